"""Ratings that are the scores of other runs: the base classifiers are trained by their own kind, in the same experiment."""
