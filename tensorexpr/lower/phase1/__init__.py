"""Phase 1: flat storage, the narrowest index types, simple indices."""
