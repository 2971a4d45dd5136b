"""Phase 2: loops as the machine will run them."""
