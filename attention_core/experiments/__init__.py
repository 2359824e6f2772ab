"""Experiments: one module per question, usable without a browser.

An experiment is a list of independent frozen tasks and a pure function from a task to rows, so that progress, stopping,
streaming charts, caching and running elsewhere cost nothing. Such a module has

- ``tasks(...) -> tuple[Task, ...]``, in the order in which results are worth seeing;
- ``run(task, *, load=load) -> Sequence[Row]``, seeded by what the task says and by nothing else.
"""
