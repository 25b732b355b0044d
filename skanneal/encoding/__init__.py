"""From a user's table to encoded rows and back, hyperparameters included."""
