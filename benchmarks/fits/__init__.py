"""What whole fits say and cost, and the pages that are made from their lines of results."""
