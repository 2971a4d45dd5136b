"""The subcommand `onnx-conformance`: the tests of the ONNX standard on our backend.

cases      the tests that the installed package `onnx` has
workers    run them in processes of their own, which may crash or hang
table      how many pass by group and operator
"""
