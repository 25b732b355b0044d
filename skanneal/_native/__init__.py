"""What everything compiled is made of: lanes, run-time dispatch, mathematics, random draws."""
