"""Where a worker listens, and what it is told on its command line."""

from __future__ import annotations

import pytest

from tensorexpr.driver.worker import cores_of
from tensorexpr.errors import TuningError
from tensorexpr.fleet.resources import BUILD, keys_of, offered, other_versions, run_on
from tensorexpr.fleet.security import check_listening, host_of, is_loopback, security_of


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.5", "example.org"])
def test_others_are_not_let_in_without_tls(host: str) -> None:
    with pytest.raises(TuningError, match="run code on this machine: give --tls-ca-file"):
        check_listening(host, None, insecure=False)
    check_listening(host, None, insecure=True)
    check_listening(host, object(), insecure=False)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_is(host: str) -> None:
    assert is_loopback(host)
    check_listening(host, None, insecure=False)


def test_a_part_of_tls_is_refused() -> None:
    assert security_of(None, None, None) is None
    with pytest.raises(TuningError, match="--tls-cert, --tls-key is missing"):
        security_of("ca.pem", None, None)
    with pytest.raises(TuningError, match=r"there is no file no/ca\.pem, which --tls-ca-file names"):
        security_of("no/ca.pem", "no/cert.pem", "no/key.pem")


def test_addresses() -> None:
    assert [host_of(text) for text in ("tcp://10.0.0.5:8786", "tls://[::1]:8786", "host:8786")] == ["10.0.0.5", "::1", "host"]
    with pytest.raises(TuningError, match="no address of a scheduler"):
        host_of("tcp://")


def test_cores() -> None:
    assert cores_of("0-3,8,2") == [0, 1, 2, 3, 8]
    assert cores_of("") == []
    with pytest.raises(TuningError, match="--cores is 'all'"):
        cores_of("all")


def test_resources_name_keys_and_versions() -> None:
    offers = offered(2, ["a", "b:c"], 3)
    assert offers == {BUILD: 2.0, run_on("a"): 3.0, run_on("b:c"): 3.0}
    assert keys_of(offers) == ["a", "b:c"]
    assert keys_of(offered(2, ["a"], 0)) == []
    assert other_versions([*offers, "tensorexpr-0.0.9:build", "GPU"]) == ["0.0.9"]
