"""How methods look in all pictures of a family: colour, marker and line of each."""

SCHEDULES = {
    "anneal": ("black", "o", "-"),
    "linear_anneal": ("tab:orange", "s", "--"),
    "prior_gibbs": ("tab:blue", "^", ":"),
    "sequential_gibbs": ("tab:green", "v", "-."),
    "accelerating_anneal": ("0.5", "D", "--"),
    "energy_anneal": ("tab:red", "x", ":"),
}
WAYS = {
    "none": ("black", "o", "-"),
    "stt": ("tab:orange", "s", "-"),
    "tt": ("tab:orange", "D", ":"),
    "spt": ("tab:blue", "^", "--"),
    "pt": ("tab:blue", "v", ":"),
    "none x4": ("black", "o", "-."),
    "stt re-centred": ("0.5", "x", "-"),
}
