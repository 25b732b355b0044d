"""What tests share: exact laws by enumeration, reference formulas, tables and fits, clusters."""
