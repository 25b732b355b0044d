"""Chained regressions of other packages, with the methods of `CrossCatImputer` that suites call."""


class Chained:
    """Regressions of each column on the others, in turn, fitted anew for each table of draws."""

    def __init__(self, seed):
        self.seed = seed

    def __repr__(self):
        return type(self).__name__

    def fit(self, frame):
        return self


class MiceForest(Chained):
    """Boosted trees; each fill is the observed value of a row that is predicted alike.

    miceforest 6.0.5 runs with lightgbm before 4.7."""

    def imputations(self, frame, n):
        from miceforest import ImputationKernel

        levels = dict.fromkeys(frame.select_dtypes(exclude="number"), "category")
        kernel = ImputationKernel(frame.astype(levels), num_datasets=n, random_state=self.seed)
        kernel.mice(5)
        return [kernel.complete_data(dataset=i) for i in range(n)]
