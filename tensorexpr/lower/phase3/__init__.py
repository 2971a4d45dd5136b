"""Phase 3: the last cleaning before code generation."""
