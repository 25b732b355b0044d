"""The tables and figures of the papers that the samplers come from."""
