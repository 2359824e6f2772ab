"""Experiments: one module per question, usable without the web app.

An experiment is a list of independent frozen tasks and a pure function from a task to rows. Progress bars, cancelling,
streaming charts, caching and remote execution then need no extra code. Each such module has

- ``tasks(...) -> tuple[Task, ...]``, with the most useful results first;
- ``run(task, *, load=load) -> Sequence[Row]``, whose random seeds depend on the task only.
"""
