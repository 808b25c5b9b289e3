"""Conformance suites: one exam for every algorithm, surrogate, classifier, problem and store.

Each suite is a function that raises AssertionError with a sentence about what was broken, so that
it works under any test runner::

    from neuropareto.testing.algorithm import check_algorithm

    def test_mine():
        check_algorithm(MyAlgorithm())
"""
