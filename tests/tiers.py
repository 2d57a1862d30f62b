"""Which tests `make test` leaves to `make test-slow`.

Quick tests take a part of the cases of a test that has many, or that takes long: every so many-th, spread over all of them; 0: none. "*" is about all
other tests of a file. What is marked slow where it stands is slow besides.
"""

import pytest

THINNED = {
    "docs/test_docs.py": {"test_long_commands_run": 0, "test_the_examples_of_the_labs_page_run": 0},
    "engines/test_consent.py": {
        "test_a_register_in_every_form": 6,
        "test_ids_are_the_same_as_in_ledgers": 4,
        "test_in_every_form": 6,
        "test_in_spark": 0,
        "test_the_latest_entry_counts_and_the_strictest_of_one_date": 0,
    },
    "engines/test_files.py": {"test_a_folders_name_is_a_column": 2},
    "engines/test_many_keys.py": {
        "test_every_question_finds_its_keys": 3,
        "test_many_keys_are_found_as_one_by_one": 3,
        "test_many_keys_in_postgresql": 2,
        "test_many_keys_in_spark": 0,
        "test_public_groups_are_answered_as_tables_of_their_own": 20,
        "test_regressions_of_public_groups_have_the_moments_of_tables_of_their_own": 0,
    },
    "engines/test_most_frequent.py": {"*": 2, "test_the_order_of_a_list_decides_nothing": 0},
    "engines/test_own_database.py": {"test_tables_of_several_threads": 0},
    "engines/test_patience.py": {
        "test_ctrl_c_stops_the_query_and_leaves_the_ledger_right": 0,
    },
    "engines/test_people.py": {
        "*": 3,
        "test_only_tiers_that_allow_something_are_read_where_people_have_one_row": 1,
        "test_rows_come_to_what_they_come_to_in_plain_python": 0,
        "test_rows_of_some_people_come_to_what_they_come_to_in_plain_python": 1,
        "test_somebody_in_several_public_groups_is_refused_before_anything_is_answered": 1,
        "test_tiers_are_the_strictest_too": 1,
        "test_under_add_remove_bad_levels_and_rows_of_nobody_are_left_out": 0,
        "test_under_add_remove_somebody_with_one_bad_level_is_not_read": 1,
        "test_what_is_not_a_level_counts_as_opted_out_where_who_is_there_is_private": 1,
        "test_who_opted_out_by_one_row_is_never_read": 0,
    },
    "engines/test_postgres.py": {"*": 3, "test_every_statistic_has_the_same_integers": 6},
    "engines/test_public_people.py": {"test_in_every_form": 4, "test_in_spark": 0},
    "engines/test_quantiles.py": {
        "*": 2,
        "test_intervals_hold": 0,
        "test_people_are_counted_at_their_points_of_a_fine_grid": 1,
    },
    "engines/test_rest.py": {"test_as_in_plain_python": 5},
    "engines/test_sources.py": {
        "*": 3,
        "test_a_condition_is_met_by_whom_it_should_be": 1,
        "test_a_condition_that_cannot_be_met_is_refused": 1,
    },
    "engines/test_spark.py": {"*": 0, "test_names_that_differ_in_case_only_and_collations": 1},
    "engines/test_squares.py": {"test_squares_in_duckdb": 2, "test_squares_in_spark": 0},
    "fuzz/test_cli.py": {
        "*": 3,
        "test_a_malformed_file_is_refused_or_read": 6,
        "test_any_names_of_columns": 6,
    },
    "fuzz/test_ledger.py": {"test_words_and_calls_in_turn": 0},
    "fuzz/test_names.py": {"*": 3, "test_every_name_names_its_own_column": 6},
    "fuzz/test_tables.py": {"*": 2, "test_a_name_is_just_a_name": 0},
    "golden/test_golden.py": {"test_some_releases_are_as_they_were": 2},
    "lab/test_audit.py": {
        "test_a_planted_bug_is_found": 80,
        "test_an_audit_does_not_touch_the_noise_of_releases": 0,
        "test_no_alarm_in_a_row": 0,
        "test_nothing_is_found_where_nothing_is": 0,
        "test_the_command_on_a_narrow_question": 0,
        "test_the_same_seed_gives_the_same_audit_in_any_number_of_processes": 0,
    },
    "lab/test_audit_laws.py": {
        "*": 2,
        "test_a_loss_is_the_largest_log_ratio_over_all_outputs": 0,
        "test_a_sound_release_is_rarely_said_to_lose_more": 0,
    },
    "lab/test_audit_noise.py": {
        "*": 2,
        "test_a_sound_noise_passes": 0,
        "test_two_audits_draw_other_scales": 0,
    },
    "lab/test_census.py": {"*": 3},
    "lab/test_check.py": {"*": 2, "test_a_broken_algorithm_is_found": 6},
    "lab/test_claims.py": {"test_claims": 0, "test_claims_with_few_runs": 0, "test_points_are_whole": 6},
    "lab/test_comparison.py": {"*": 2},
    "lab/test_jorgensen.py": {
        "*": 3,
        "test_counts_are_as_released": 6,
        "test_everyone_alike_is_the_exponential_mechanism_whoever_chooses": 0,
        "test_medians_are_as_released": 0,
        "test_the_median_by_the_exponential_mechanism": 0,
    },
    "lab/test_outlook.py": {
        "*": 3,
        "test_every_outlook_can_be_described_and_printed": 6,
        "test_every_statistic_can_be_drawn": 6,
    },
    "lab/test_populations.py": {"*": 2},
    "lab/test_programs.py": {
        "test_a_planted_bug_is_found": 12,
        "test_nothing_is_found_where_nothing_is": 6,
        "test_programs_of_an_audit_do_not_run_in_its_process": 0,
    },
    "lab/test_reproduction.py": {
        "*": 2,
        "test_command_in_json": 0,
        "test_figures_are_the_same_bytes_again": 0,
        "test_it_works_in_a_script_without_a_guard": 0,
        "test_numbers_do_not_depend_on_the_number_of_processes": 0,
        "test_the_page": 0,
        "test_when_the_command_ends_everyone_does": 0,
        "test_command": 0,
    },
    "lab/test_simulation.py": {
        "*": 3,
        "test_levels_are_drawn_anew_in_every_run": 6,
        "test_means_are_never_worse_than_predicted": 6,
        "test_simulated_answers_have_the_law_of_releases": 6,
        "test_the_bias_is_what_levels_make_it": 6,
        "test_the_summary_is_that_of_a_table": 0,
        "test_whatever_can_be_planned_can_be_simulated": 6,
        "test_with_noise_the_twin_has_the_law_of_a_release": 18,
    },
    "laws/test_add_remove.py": {"*": 3, "test_the_loss_is_exactly_the_charge": 6},
    "laws/test_exact_privacy.py": {"*": 5, "test_the_loss_is_exactly_the_charge": 30},
    "laws/test_exact_selection.py": {
        "*": 3,
        "test_nobody_loses_more_than_their_charge": 12,
        "test_scores_by_rank_are_exact_whole_numbers": 1,
    },
    "laws/test_laws.py": {
        "*": 4,
        "test_a_summary_of_other_people_is_not_answered": 1,
        "test_charges_are_at_most_the_levels_times_the_share": 6,
        "test_order_of_people_is_irrelevant": 12,
        "test_who_is_charged_nothing_is_not_read": 1,
    },
    "laws/test_parts.py": {
        "*": 3,
        "test_nobody_loses_more_than_their_charge": 14,
        "test_sampling_loses_no_more": 14,
        "test_the_engine_adds_people_up": 0,
        "test_the_loss_is_exactly_the_charge": 14,
        "test_whoever_is_there_decides_nothing_but_outcomes": 14,
    },
    "laws/test_regression.py": {
        "*": 3,
        "test_a_mean_alone_stays_within_its_bounds_whatever_the_noise": 1,
        "test_sums_of_those_who_are_kept_are_exact_beyond_the_doubles": 1,
    },
    "laws/test_covariance.py": {
        "test_errors_are_below_the_predicted_ones_elsewhere": 4,
        "test_errors_are_as_predicted_where_the_values_are_the_hardest": 0,
        "test_errors_of_a_correlation_are_as_predicted_for_people_as_they_are_assumed": 0,
        "test_nothing_fails_because_of_a_value": 2,
        "test_the_sensitivity_is_the_largest_distance_of_any_two_points": 3,
        "test_intervals_hold_and_errors_are_below_the_predicted_ones": 56,
        "test_nobody_loses_more_than_their_charge_and_somebody_loses_it_all": 8,
        "test_without_noise_it_is_that_of_numpy": 6,
    },
    "laws/test_proportion.py": {
        "test_errors_are_as_predicted_for_half_of_the_people_and_below_elsewhere": 3,
        "test_intervals_hold": 12,
        "test_nobody_loses_more_than_their_charge_and_somebody_loses_it_all": 3,
    },
    "laws/test_sample.py": {
        "*": 3,
        "test_nobody_loses_more_than_their_charge_of_quantiles": 4,
        "test_quantiles_of_public_people_alone_have_no_noise": 1,
        "test_scores_of_many_who_are_kept_are_exact_beyond_64_bits": 1,
        "test_the_loss_is_the_charge_of_numbers": 8,
    },
    "laws/test_several_rows.py": {
        "test_nobody_loses_more_than_their_charge_and_somebody_all_of_it": 12,
        "test_noise_for_one_group_would_not_do_for_two": 2,
    },
    "laws/test_targets.py": {
        "test_a_form_that_is_too_large_is_noticed": 4,
        "test_nobody_changes_the_sums_by_more_than_the_sensitivity_and_somebody_by_as_much": 2,
        "test_nobody_who_is_kept_changes_the_sums_by_more_than_their_sensitivity": 2,
        "test_the_forms_are_what_is_summed": 4,
    },
    "laws/test_variance.py": {"*": 2, "test_intervals_hold_and_errors_are_below_the_predicted_ones": 30},
    "laws/test_workloads.py": {
        "test_charges_stay_within_the_share_and_it_is_never_worse_than_an_equal_split": 0
    },
    "ledger/test_asking.py": {
        "test_what_a_ledger_requires_is_required_before_anything_is_read": 4,
        "test_who_asked_and_why_is_booked_with_every_kind_of_release": 2,
    },
    "ledger/test_chain.py": {
        "*": 2,
        "test_a_changed_value_shows": 6,
        "test_a_number_beyond_its_limits_is_damage_wherever_it_stands": 1,
        "test_nonsense_in_any_column_is_told_and_does_not_confuse_verify": 4,
        "test_people_who_are_not_what_the_accounts_have_are_refused": 1,
        "test_swapped_rows_show": 4,
    },
    "ledger/test_concurrency.py": {
        "*": 5,
        "test_a_ledger_is_made_by_two_at_once_again_and_again": 0,
        "test_a_server_whose_transactions_are_strict_by_default": 0,
        "test_processes_spend_exactly_what_there_is": 4,
        "test_processes_that_make_the_same_ledger_make_one": 4,
        "test_versions_are_registered_while_others_release": 0,
    },
    "ledger/test_crash.py": {
        "test_a_ledger_that_charges_late_or_in_part_is_noticed": 0,
        "test_killed_at_any_line_with_postgres": 0,
        "test_killed_from_outside_at_any_time": 0,
    },
    "ledger/test_damage.py": {
        "*": 2,
        "test_accounts_of_an_older_version_are_checked_as_well": 1,
        "test_accounts_that_were_changed_on_a_server_are_refused": 1,
        "test_damage_is_refused_or_does_no_harm": 0,
        "test_entries_that_somebody_else_made_up_are_no_surprise": 12,
        "test_nonsense_in_any_column_is_a_refusal": 0,
    },
    "ledger/test_groups.py": {"*": 8},
    "ledger/test_histories.py": {
        "*": 2,
        "test_a_registration_says_what_it_changed_and_that_it_changed_nothing": 1,
        "test_every_history_agrees_with_a_dictionary_of_people": 0,
        "test_every_history_in_postgres_agrees_with_a_dictionary_of_people": 0,
        "test_many_charges_are_one_charge_of_their_sum": 0,
        "test_what_is_left_is_matched_person_by_person": 4,
    },
    "ledger/test_many_levels.py": {
        "test_digests_are_of_the_same_text_as_ever": 2,
        "test_everyone_has_what_a_dictionary_of_people_says": 0,
    },
    "ledger/test_person.py": {"test_costs_are_those_of_the_person": 11, "test_everything_about_somebody": 2},
    "ledger/test_raising.py": {
        "test_a_level_is_raised_between_releases_and_not_within_one": 0,
        "test_processes_that_register_at_once_raise_nothing": 0,
    },
    "ledger/test_refusals.py": {
        "*": 4,
        "test_a_missing_key_file": 1,
        "test_a_plan_that_was_tampered_with": 2,
        "test_a_table_that_changes_while_it_is_read_gives_no_answer": 1,
        "test_an_engine_that_cannot_tell_people_apart": 2,
        "test_everyone_is_charged_or_nobody": 2,
        "test_how_often_a_plan_can_be_afforded": 2,
        "test_the_share_that_is_told_fits_whatever_the_mechanism": 0,
    },
    "ledger/test_refusing.py": {"test_one_entry_an_hour_however_often_somebody_tries": 2},
    "ledger/test_renewing.py": {
        "test_any_history_agrees_with_a_dictionary_of_people": 4,
        "test_bad_input": 3,
    },
    "ledger/test_repeating.py": {
        "test_every_field_of_a_question_is_in_the_fingerprint": 4,
        "test_it_is_the_same_answer_with_the_same_error_and_interval": 5,
    },
    "ledger/test_rotating.py": {"*": 3},
    "ledger/test_withdrawing.py": {
        "test_after_a_withdrawal_no_answer_is_about_them": 2,
        "test_any_float_is_the_same_person_as_in_a_table": 0,
        "test_any_text_is_the_same_person_as_in_a_table": 0,
    },
    "promises/test_public_people.py": {"test_everyone_else_may_be_anybody": 4, "test_without_a_ledger": 2},
    "promises/test_missing_in_several_rows.py": {"test_in_duckdb": 0},
    "promises/test_offered.py": {
        "test_files_and_relations": 0,
        "test_what_is_offered_is_released": 15,
        "test_what_is_refused_costs_nothing": 3,
        "test_postgresql": 0,
    },
    "promises/test_reference.py": {"*": 3, "test_a_mistake_is_seen": 4, "test_in_duckdb": 18},
    "promises/test_renamed.py": {"test_in_duckdb": 0, "test_in_postgresql": 0},
    "promises/test_violations.py": {
        "*": 3,
        "test_a_quoted_text_does_not_decide_whether_a_large_csv_file_is_read": 6,
        "test_who_lacks_a_value_is_not_public_in_public_groups": 12,
    },
    "statistical/test_auditors.py": {"test_a_bound_is_as_sure_as_it_says": 3},
    "statistical/test_brackets.py": {
        "test_intervals_in_values_hold": 40,
        "test_they_hold_of_any_private_number_of_people": 8,
    },
    "statistical/test_choose.py": {
        "test_choices_follow_their_law_and_no_other": 0,
        "test_equal_scores_are_equally_likely": 0,
        "test_opendp_at_another_scale_or_by_permute_and_flip_differs": 0,
        "test_opendp_chooses_the_same": 0,
        "test_the_bounds_hold_the_weights": 4,
        "test_undecided_bits_ask_for_more_until_they_decide": 3,
    },
    "statistical/test_derived.py": {
        "test_differences_hold_exactly_where_everyone_weighs_the_same": 0,
        "test_intervals_hold_whatever_the_mechanism": 0,
        "test_shares_hold_where_weights_differ": 0,
        "test_shares_of_a_table_hold": 0,
    },
    "statistical/test_honesty.py": {
        "test_count_and_histogram_stay_below_their_worst_case": 0,
        "test_error_and_interval_are_as_predicted": 5,
        "test_min_and_max_are_as_far_out_as_they_say": 0,
    },
    "statistical/test_missing.py": {
        "test_intervals_hold": 60,
        "test_percentiles_of_those_who_have_a_value_hold": 3,
        "test_the_error_of_a_release_is_for_as_many_as_have_a_value": 12,
    },
    "statistical/test_noise.py": {
        "test_draws_are_independent": 0,
        "test_opendp_at_another_scale_differs": 0,
        "test_opendp_draws_the_same": 0,
        "test_the_last_digits_are_noisy_too": 0,
        "test_the_noise_follows_its_law_and_no_other": 10,
        "test_the_noise_is_symmetric": 0,
        "test_the_tail_goes_on": 0,
        "test_zero_is_not_drawn_twice_as_often": 0,
    },
    "statistical/test_ranks.py": {
        "test_bounds_a_thousand_times_too_wide_do_not_break_the_prediction": 8,
        "test_rank_is_better_than_pe_and_mix": 0,
        "test_the_predicted_percentile_error_is_true_or_an_upper_bound": 36,
    },
    "statistical/test_regression.py": {"*": 3},
    "statistical/test_sample.py": {
        "*": 2,
        "test_error_and_interval_are_as_predicted": 28,
        "test_intervals_hold_where_most_of_the_roster_are_not_there": 4,
        "test_people_are_kept_independently_of_each_other": 0,
    },
    "statistical/test_sizes.py": {
        "test_intervals_hold_in_private_groups_of_any_size": 70,
        "test_intervals_hold_with_a_condition_and_where_people_come_and_go": 9,
        "test_the_error_of_a_row_is_what_is_measured": 2,
    },
    "unit/test_answers_as_data.py": {"test_a_row_for_each_number": 2, "test_every_kind_is_drawn": 9},
    "unit/test_bad_input.py": {
        "test_a_million_distinct_levels_are_planned_and_released": 0,
        "test_nobody_fails_to_be_read_among_objects": 2,
    },
    "unit/test_convolution.py": {"*": 3, "test_what_is_certain": 1},
    "unit/test_derived.py": {
        "test_a_ratio_is_where_the_difference_may_be_zero": 4,
        "test_a_single_number_has_the_interval_of_its_release": 3,
        "test_the_noises_of_a_number_are_those_that_are_drawn": 4,
    },
    "unit/test_error.py": {
        "*": 3,
        "test_the_interval_of_an_average_of_points_holds_the_points_of_every_level": 1,
        "test_the_interval_of_many_noises_is_as_wide_as_a_normal_law_needs": 1,
    },
    "unit/test_logging.py": {"test_logs_of_neighbors_are_the_same": 4},
    "unit/test_missing.py": {"test_without_noise_it_is_what_python_makes_of_those_who_have_a_value": 12},
    "unit/test_pe.py": {
        "*": 3,
        "test_scores_are_the_definition": 9,
        "test_who_is_charged_nothing_is_not_read_and_who_is_charged_a_millionth_is": 1,
    },
    "unit/test_pickle.py": {"test_plans_of_every_kind": 6},
    "unit/test_sampling.py": {
        "*": 2,
        "test_a_row_is_kept_if_and_only_if_its_word_is_below_its_chance": 1,
        "test_people_beside_the_roster_are_not_passed": 1,
        "test_rows_are_kept_by_what_people_have_left_and_never_of_those_who_have_nothing": 1,
    },
    "unit/test_sklearn.py": {"test_scikit_learns_own_checks": 2},
    "unit/test_spread.py": {"*": 2, "test_a_workload_has_them_all": 1},
    "unit/test_without_data.py": {"test_they_can_be_drawn": 2},
}
"""{file: {test: every so many-th case}}."""


def leave_to_slow(items, root):
    """Mark what the table says."""
    every = {(root / file, name): n for file, tests in THINNED.items() for name, n in tests.items()}
    seen = dict.fromkeys(every, 0)
    for item in items:
        test = item.path, item.name.split("[")[0]
        if test not in every:
            test = item.path, "*"
        if test in every:
            if every[test] == 0 or seen[test] % every[test]:
                item.add_marker(pytest.mark.slow)
            seen[test] += 1
