"""`relax.ir`: what TVM has of graphs below that name."""
