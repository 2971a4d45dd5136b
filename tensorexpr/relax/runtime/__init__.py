"""Running graphs: executables, and the virtual machine that calls their functions."""
