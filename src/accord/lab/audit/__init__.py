"""The audit: doubt accord, and algorithms of your own, by four independent methods.

`accord audit` on the command line.

    result = audit.run(["affine"], ["mean"])            # exact and replay; runs=10_000 adds empirical
    result.passed, result.findings                      # worst first
    print(audit.check(algorithm, people, epsilon=1.0))  # an algorithm for accord.sample

runner.py decides what is looked at, findings.py keeps what came of it, report.py prints it. `check` is in
algorithm_check.py, and offered_page.py prints docs/offered.md. The methods:

exact       every case (cases.py, case_plans.py) on every tiny table (case_tables.py), neighbor and output,
            from probabilities: exact.py, release_laws.py, recording_noise.py, recorded_draws.py;
            the noise itself, decision by decision: noise_laws.py, noise_source.py, noise_decisions.py
replay      neighbors of real tables through the real engine, with the noise frozen: replay.py;
            what holds whatever is asked: invariants.py;
            against accord written a second time: reference.py, reference_values.py, reference_consent.py,
            reference_comparison.py
program     whole programs in two worlds that differ in one person: programs.py, program_runs.py;
            in random worlds: random_tables.py, table_forms.py, random_programs.py, rare_worlds.py,
            random_registers.py;
            of every combination that is offered: offered.py, examples.py, offered_programs.py
empirical   many releases with real noise, and what they surely show: empirical.py
"""

from accord.lab.audit.algorithm_check import check
from accord.lab.audit.findings import Audit, Finding, Look
from accord.lab.audit.runner import ALPHA, run

__all__ = ["ALPHA", "Audit", "Finding", "Look", "check", "run"]
