"""The functions that the managers call, one file a kind, each registered under the field's name."""
