"""Layers of diffusion networks: embeddings of their steps, and attention to a text."""

from __future__ import annotations

from typing import Any

from ....errors import DeclarationError
from . import op
from .core import Module, ModuleList, Tensor
from .modules import GroupNorm, Linear, SiLU


class Timesteps(Module):
    """Sines and cosines of steps; see `nn.op.get_timestep_embedding`."""

    def __init__(self, num_channels: int, flip_sin_to_cos: bool = False, downscale_freq_shift: float = 1) -> None:
        self.num_channels, self.flip_sin_to_cos, self.downscale_freq_shift = num_channels, flip_sin_to_cos, downscale_freq_shift

    def forward(self, x: Tensor) -> Any:
        """A row of `num_channels` for each step."""
        return op.get_timestep_embedding(x, self.num_channels, self.flip_sin_to_cos, self.downscale_freq_shift)


class TimestepEmbedding(Module):
    """Two layers with an activation between them, behind `Timesteps`.

    Raises:
        DeclarationError: for other activations than "silu".
    """

    def __init__(
        self, in_channels: int, time_embed_dim: int, act_fn: str = "silu", out_dim: int | None = None, post_act_fn: str | None = None,
        cond_proj_dim: int | None = None,
    ) -> None:  # fmt: skip
        if act_fn != "silu" or post_act_fn not in (None, "silu"):
            raise DeclarationError(f'TimestepEmbedding: act_fn and post_act_fn are "silu", not {act_fn!r} and {post_act_fn!r}')
        self.linear_1 = Linear(in_channels, time_embed_dim)
        self.cond_proj = None if cond_proj_dim is None else Linear(cond_proj_dim, in_channels, bias=False)
        self.act = SiLU()
        self.linear_2 = Linear(time_embed_dim, time_embed_dim if out_dim is None else out_dim)
        self.post_act = None if post_act_fn is None else SiLU()

    def forward(self, sample: Tensor, condition: Tensor | None = None) -> Any:
        """The embedding of a step, with the projection of a condition added in front if there is one."""
        if condition is not None:
            if self.cond_proj is None:
                raise DeclarationError("TimestepEmbedding: a condition needs cond_proj_dim")
            sample = sample + self.cond_proj(condition)
        made = self.linear_2(self.act(self.linear_1(sample)))
        return made if self.post_act is None else self.post_act(made)


class Attention(Module):
    """Attention of rows to rows of another sequence, or of their own.

    Args:
        query_dim: features of a row.
        cross_attention_dim: those of the other sequence; the same if None.
        heads: how many there are, of `dim_head` features each.
        bias, out_bias: of the projections in front and behind.
        norm_num_groups: groups of a normalisation in front, if there is one.
        scale_qk: whether products are divided by the root of `dim_head`.
    """

    def __init__(
        self, query_dim: int, cross_attention_dim: int | None = None, heads: int = 8, dim_head: int = 64, bias: bool = False,
        norm_num_groups: int | None = None, out_bias: bool = True, scale_qk: bool = True,
    ) -> None:  # fmt: skip
        other, inner = cross_attention_dim or query_dim, dim_head * heads
        self.heads, self.dim_head, self.scale_qk = heads, dim_head, scale_qk
        self.to_q = Linear(query_dim, inner, bias=bias)
        self.to_k = Linear(other, inner, bias=bias)
        self.to_v = Linear(other, inner, bias=bias)
        self.group_norm = None if norm_num_groups is None else GroupNorm(norm_num_groups, query_dim)
        self.to_out = ModuleList([Linear(inner, query_dim, bias=out_bias)])

    def forward(
        self, hidden_states: Tensor, encoder_hidden_states: Tensor | None = None, attention_mask: Tensor | None = None, **options: Any
    ) -> Any:
        """(batch, rows, query_dim), of the same shape as the input.

        Args:
            hidden_states: the rows.
            encoder_hidden_states: the other sequence; the rows themselves if None.
            attention_mask: added to the products, if there is one.
            options: accepted, as other implementations have some.
        """
        x = hidden_states if self.group_norm is None else self.group_norm(hidden_states, channel_axis=2, axes=[1])
        other = x if encoder_hidden_states is None else encoder_hidden_states

        def by_head(rows: Any) -> Any:
            return op.reshape(rows, [*rows.shape[:2], self.heads, self.dim_head])

        q, k, v = self.to_q(x), self.to_k(other), self.to_v(other)
        scale = None if self.scale_qk else 1.0
        made = op.scaled_dot_product_attention(by_head(q), by_head(k), by_head(v), attention_mask, scale=scale)
        return self.to_out[0](op.reshape(made, [*made.shape[:2], self.heads * self.dim_head]))


__all__ = ["Attention", "TimestepEmbedding", "Timesteps"]
