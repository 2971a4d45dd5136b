"""What a kernel of a grid of threads becomes: one launch at its top, and on a CPU loops over its blocks and threads."""
