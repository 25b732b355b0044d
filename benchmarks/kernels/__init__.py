"""What a compiled step costs, beside bare C or an optimised library."""
