"""`python -m tensorexpr.driver.tvmc`: the same subcommands, where programs of tvmc look for them."""

import sys

from ..cli import main

if __name__ == "__main__":
    sys.exit(main())
