//! The suite that every store passes. Each story is a module of functions that take the store.

pub(crate) mod access;
pub(crate) mod agent_events;
pub(crate) mod agent_runs;
pub(crate) mod anonymous;
pub(crate) mod apart;
pub(crate) mod captures;
pub(crate) mod checkup;
pub(crate) mod corrections;
pub(crate) mod evidence;
pub(crate) mod fair_share;
pub(crate) mod idempotency;
pub(crate) mod installation;
pub(crate) mod judge_calls;
pub(crate) mod keys;
pub(crate) mod knowledge;
pub(crate) mod ledger;
pub(crate) mod logins;
pub(crate) mod open_work;
pub(crate) mod people;
pub(crate) mod rounds;
pub(crate) mod shares;
pub(crate) mod storage;
pub(crate) mod takeover;
pub(crate) mod tasks;
pub(crate) mod teams;
pub(crate) mod templates;
pub(crate) mod trust;
pub(crate) mod verifier_runs;
pub(crate) mod verifiers;
pub(crate) mod workflow_content;
pub(crate) mod workflows;

/// Makes one test of each story for a database.
macro_rules! conformance {
    ($start:expr) => {
        $crate::conformance::stories!(
            $start,
            agent_runs,
            a_run_reads_back_with_its_steps,
            steps_are_taken_by_age_and_within_a_run_by_priority,
            an_executor_does_only_so_much_at_once,
            accounts_take_turns_with_the_steps_of_an_executor,
            a_step_is_taken_once_by_all_who_ask_at_once,
            a_step_whose_lease_ran_out_is_taken_from_whoever_had_it,
            what_became_of_a_run_is_written_whole_or_not_at_all,
            events_of_a_run_are_read_from_both_ends,
            runs_are_listed_newest_first_with_their_counts,
            a_step_that_waits_is_taken_when_its_time_comes,
            another_account_sees_no_task_runs,
        );
        $crate::conformance::stories!(
            $start,
            installation,
            an_executor_reads_back_as_it_was_added,
            a_name_is_taken_only_once,
            an_executor_and_its_session_are_added_together_or_not_at_all,
            a_session_of_another_executor_adds_nothing,
            executors_are_listed_by_name_in_pages,
            a_probe_is_kept_and_does_not_change_the_pool,
            removing_an_executor_removes_its_sessions,
            a_session_reads_back_as_it_was_added,
            a_session_needs_an_executor_and_a_free_name,
            sessions_are_listed_by_identifier_in_pages,
            a_session_is_removed_once,
            the_pool_holds_everything,
            every_change_of_the_pool_raises_its_version,
            two_nodes_cannot_add_the_same_executor,
        );
        $crate::conformance::stories!(
            $start,
            keys,
            an_account_may_be_ensured_again,
            a_key_reads_back_and_can_be_revoked,
            a_key_of_another_account_is_not_replaced,
            a_key_needs_an_account,
            adding_a_key_makes_its_account,
            a_name_is_free_again_when_its_key_has_ended,
            of_two_keys_with_one_name_at_once_one_is_added,
            keys_are_listed_in_the_order_they_were_made_in_pages,
            live_keys_are_found_whatever_ended_before,
            a_key_is_revoked_once_by_identifier_or_name,
            an_identifier_comes_before_a_name,
            nobody_revokes_the_own_key_or_the_last_admin_key,
            two_admins_cannot_revoke_each_other_at_once,
            a_rotated_key_has_a_successor_and_an_end,
            a_rotation_keeps_the_length_of_a_life,
            a_key_that_has_ended_cannot_be_rotated,
            the_last_use_of_a_key_never_goes_back,
        );
        $crate::conformance::stories!(
            $start,
            people,
            a_handle_is_claimed_once_and_found,
            a_handle_that_was_left_leads_on_for_ninety_days,
            of_two_who_claim_one_handle_at_once_one_gets_it,
            a_handle_claimed_under_a_key_is_claimed_once,
        );
        $crate::conformance::stories!(
            $start,
            logins,
            a_code_makes_an_account_once_and_its_invitations_find_it,
            a_code_is_tried_by_strangers_and_stays_good,
            a_code_is_not_replaced_by_who_asks_for_others,
            a_login_makes_no_account,
            a_program_is_let_in_once,
            a_program_that_asks_too_often_is_told,
            a_login_of_a_program_ends_and_lets_in_no_other,
            an_invitation_finds_the_account_of_its_address,
        );
        $crate::conformance::stories!(
            $start,
            teams,
            a_team_is_made_by_somebody_with_a_handle,
            a_member_joins_by_accepting_and_leaves_alone,
            nobody_else_sees_or_changes_a_team,
            an_invitation_is_answered_once_and_in_time,
            an_address_without_an_account_is_invited_like_any_other,
            a_team_is_handed_over_once,
            a_deleted_team_leaves_nothing_behind,
            of_many_answers_at_once_one_counts,
            invitations_are_listed_newest_first_in_pages,
            nobody_sends_invitations_without_end,
            what_is_done_to_one_team_stays_with_it,
        );
        $crate::conformance::stories!(
            $start,
            captures,
            of_two_rounds_of_an_execution_the_first_that_ends_is_paid,
            a_round_that_cost_nothing_leaves_the_capture_to_the_next,
            of_many_rounds_that_close_at_once_one_captures,
            executions_and_accounts_are_paid_for_apart,
            the_first_answer_to_a_step_is_found,
            an_execution_that_was_captured_twice_is_found,
        );
        $crate::conformance::stories!(
            $start,
            checkup,
            a_sound_store_has_no_faults,
            rounds_that_have_ended_are_walked_in_pages,
            the_newest_rounds_are_told_from_the_others,
            a_record_reads_back_with_all_that_was_said,
            what_was_changed_behind_the_back_of_the_store_is_found,
            an_entry_without_its_round_is_found,
            a_round_without_its_entry_is_found,
        );
        $crate::conformance::stories!(
            $start,
            rounds,
            an_open_round_reads_back,
            a_closed_round_reads_back_with_all_that_was_said,
            a_round_is_opened_once,
            a_round_ends_once,
            an_unknown_round_cannot_be_closed,
            a_close_that_fails_changes_nothing,
            a_receipt_belongs_to_one_round,
            rounds_are_listed_newest_first_in_pages,
            a_list_reads_nothing_of_what_was_said,
            rounds_are_filtered_by_kind_and_outcome,
            rounds_are_filtered_by_state_and_time,
            many_rounds_at_once_are_all_kept,
            of_two_closes_at_once_one_is_lost,
        );
        $crate::conformance::stories!(
            $start,
            idempotency,
            a_write_under_a_key_happens_once,
            a_write_that_did_not_happen_leaves_its_key_free,
            a_round_that_its_node_left_gives_its_key_to_another,
            an_answer_can_be_completed,
            an_answer_that_is_known_afterwards_is_kept_with_the_write,
            a_round_under_a_key_is_opened_once,
            of_two_rounds_under_one_key_at_once_one_is_opened,
            a_key_belongs_to_one_account,
            a_round_that_is_called_off_is_found_by_its_node,
        );
        $crate::conformance::stories!(
            $start,
            takeover,
            a_round_whose_lease_is_over_is_claimed_as_it_was,
            a_round_whose_lease_holds_is_left_alone,
            an_ended_round_is_never_claimed,
            a_late_close_after_a_takeover_is_lost_and_changes_nothing,
            a_claim_takes_no_more_than_it_asks_for,
            a_round_that_cannot_be_read_hinders_no_other,
            two_nodes_never_claim_the_same_round,
        );
        $crate::conformance::stories!(
            $start,
            trust,
            another_account_sees_nothing,
            another_account_cannot_close,
            two_accounts_may_have_a_round_of_the_same_identifier,
            an_entry_is_found_by_its_receipt,
            entries_cannot_be_changed_or_removed,
            a_corrupt_row_is_named,
            a_store_answers_until_it_is_closed,
        );
        $crate::conformance::stories!(
            $start,
            verifiers,
            a_verifier_reads_back_by_identifier_and_name,
            a_version_is_added_and_the_earlier_ones_stay,
            a_deploy_needs_the_token_of_the_current_version,
            of_two_deploys_at_once_one_wins,
            verifiers_are_listed_by_name_in_pages,
            a_revoked_verifier_is_gone_and_keeps_its_name,
            a_deleted_verifier_leaves_nothing_but_entries,
            what_is_said_after_its_verifier_was_deleted_is_not_kept,
            what_judges_said_under_a_policy_goes_with_their_verifier,
            runs_at_the_moment_of_a_delete_leave_nothing,
            versions_cannot_be_changed,
            the_newest_measurement_of_each_purpose_is_shown,
            a_verdict_is_known_for_a_while,
            verdicts_that_are_too_old_or_too_many_go,
            another_account_sees_no_verifiers,
            a_deploy_under_a_key_happens_once,
        );
        $crate::conformance::stories!($start, access, everybody_reaches_what_the_model_says);
        $crate::conformance::stories!(
            $start,
            apart,
            a_content_is_known_only_to_those_who_see_it,
            nobody_names_the_verifiers_of_others,
            a_verifier_that_is_shared_opens_no_other_and_no_more,
            what_ends_for_one_workflow_stays_for_another,
            the_history_of_one_workflow_opens_that_of_no_other,
            another_account_finds_no_round_in_any_way,
            two_accounts_have_the_same_names_for_different_things,
            what_ends_for_one_verifier_stays_for_another,
        );
        $crate::conformance::stories!(
            $start,
            workflows,
            a_workflow_is_saved_and_read_back_by_id_and_slug,
            a_save_needs_the_token_of_the_current_version,
            files_are_carried_forward_cleared_and_patched,
            a_grant_opens_a_workflow_from_its_floor_on,
            an_editor_changes_files_and_not_bindings,
            nobody_grants_more_than_they_have,
            what_is_put_away_is_gone_for_others_and_comes_back,
            a_deleted_workflow_leaves_nothing,
            a_token_says_which_workflow_of_others_is_saved,
            a_workflow_shares_the_verifiers_that_it_names,
            a_deleted_verifier_is_erased_for_all_who_ran_it,
            a_workflow_is_given_away_with_its_verifiers,
        );
        $crate::conformance::stories!(
            $start,
            shares,
            a_grant_takes_no_bare_name,
            what_is_shared_waits_until_it_is_used_or_answered,
            whoever_is_blocked_shares_nothing_more,
            a_grant_is_known_by_the_name_that_was_given,
            a_grant_to_an_address_of_nobody_is_like_any_other,
            grants_are_bounded_by_day_and_by_what_waits,
            a_grant_that_is_made_again_counts_for_its_day,
            a_grant_to_a_handle_of_another_ends_for_whom_it_was,
        );
        $crate::conformance::stories!(
            $start,
            workflow_content,
            workflows_are_listed_by_every_filter_newest_first,
            an_old_name_is_found_before_newer_bodies,
            a_path_is_a_file_or_a_folder,
        );
        $crate::conformance::stories!(
            $start,
            verifier_runs,
            a_run_begins_and_ends_with_its_round,
            a_run_whose_node_stopped_ends_as_an_error,
            a_round_that_is_not_opened_leaves_no_run,
            runs_are_listed_by_every_filter_newest_first,
            another_account_sees_no_runs,
        );
        $crate::conformance::stories!(
            $start,
            ledger,
            credit_is_granted_and_taken_back,
            a_round_holds_credit_and_its_end_settles_it,
            nothing_is_written_where_nothing_moves,
            an_account_without_credit_opens_nothing_that_costs,
            an_account_that_is_not_metered_may_go_below_zero,
            a_round_that_expires_gives_back_what_it_did_not_cost,
            what_was_spent_is_counted_since_a_time,
            accounts_are_listed_and_suspended,
            a_grant_under_a_key_happens_once,
            transfers_cannot_be_changed_or_removed,
            a_ledger_that_somebody_changed_is_found,
            many_rounds_at_once_never_hold_more_than_there_is,
            any_sequence_leads_to_what_the_model_says,
            little_credit_is_spent_to_its_end_and_the_next_grant_pays_the_rest,
            calls_that_the_credit_does_not_cover_run_one_at_a_time_on_all_nodes,
            credit_that_calls_may_still_cost_is_not_taken_back,
            what_a_provider_reports_afterwards_corrects_the_cost,
            another_account_sees_no_credit,
        );
        $crate::conformance::stories!(
            $start,
            judge_calls,
            judge_calls_are_on_record_before_they_leave,
            a_history_is_of_one_account_and_keeps_the_latest,
        );
        $crate::conformance::stories!(
            $start,
            corrections,
            a_correction_under_one_note_is_made_once,
        );
        $crate::conformance::stories!(
            $start,
            anonymous,
            an_address_is_given_credit_once_a_month,
            of_two_first_requests_at_once_one_brings_the_credit,
            all_without_a_key_share_one_cap_a_day,
            the_next_day_has_a_cap_of_its_own,
            a_round_that_its_node_left_gives_its_part_back,
            a_day_reserves_the_most_that_a_call_can_cost,
            what_an_address_owes_is_paid_from_the_credit_of_the_next_month,
            a_day_is_spent_to_its_last_micro_and_no_further,
        );
        $crate::conformance::stories!(
            $start,
            templates,
            a_version_is_published_and_never_changes,
            nothing_is_published_that_is_not_as_it_was_looked_at,
            only_what_is_live_is_seen_by_others,
            a_template_is_found_where_it_was,
            a_verifier_of_a_live_template_cannot_be_deleted,
            exactly_the_published_pair_can_be_run_by_anybody,
            a_fork_has_verifiers_and_names_of_its_own,
            what_is_live_is_not_deleted,
            templates_are_listed_and_searched,
            a_template_that_is_given_away_leads_on,
            the_same_is_published_once,
            nobody_publishes_or_changes_what_others_have,
            each_version_and_each_verifier_is_published_for_itself,
        );
        $crate::conformance::stories!(
            $start,
            tasks,
            a_task_reads_back_as_it_was_submitted,
            a_task_is_submitted_once,
            events_and_all_that_comes_with_them_are_written_together,
            events_are_read_in_pages_in_their_order,
            of_two_appends_on_the_same_events_one_wins,
            a_refused_append_leaves_nothing_behind,
            a_task_that_is_due_is_taken_by_one_node,
            the_longest_due_are_taken_first,
            tasks_are_listed_by_every_filter_newest_first,
            a_task_that_is_over_says_when_and_why,
            another_account_sees_no_tasks,
            events_of_tasks_cannot_be_changed_or_removed,
            the_state_is_what_the_stored_events_make,
        );
        $crate::conformance::stories!(
            $start,
            fair_share,
            accounts_take_turns_where_not_all_get_a_place,
            no_account_gets_every_place,
            every_account_is_looked_at_before_long,
            what_nobody_has_begun_is_found_behind_what_is_under_way,
        );
        $crate::conformance::stories!(
            $start,
            knowledge,
            a_decision_is_found_by_those_who_ask_the_same,
            a_deprecated_decision_is_exported_and_not_used,
            what_is_deprecated_is_so_wherever_it_was_decided,
            what_is_taken_from_a_deprecated_decision_is_not_used,
            what_is_deprecated_is_not_taken_over,
            outputs_are_read_by_name_and_none_that_is_too_large,
            what_is_remembered_is_exported_in_pages,
        );
        $crate::conformance::stories!(
            $start,
            agent_events,
            an_event_with_a_key_is_added_once,
            an_event_is_sent_by_one_node_until_its_lease_ends,
            executors_that_have_enough_are_left_out,
            the_word_of_a_late_sender_is_not_noted,
            events_of_agents_are_listed_by_every_filter,
            no_more_events_wait_for_an_executor_than_may,
            old_events_go_and_those_to_be_told_stay,
            events_for_a_person_are_found,
        );
        $crate::conformance::stories!(
            $start,
            storage,
            what_was_asked_is_kept_beside_its_round,
            what_was_asked_and_said_is_erased_and_the_decision_stays,
            what_an_account_stores_is_counted,
            what_is_old_goes_and_what_is_young_stays,
            events_go_with_tasks_that_ended_long_ago,
            tasks_and_runs_that_are_pruned_count_nothing,
            a_round_that_is_erased_counts_nothing,
            a_round_whose_verifier_went_is_pruned_all_the_same,
            every_table_of_accounts_counts_or_is_exempt,
            nobody_fills_the_account_of_an_owner_without_room,
            accounts_with_something_stored_are_found_one_after_another,
        );
        $crate::conformance::stories!($start, open_work, what_is_open_is_counted_across_accounts);
        $crate::conformance::stories!(
            $start,
            evidence,
            evidence_is_kept_for_its_account_alone,
            evidence_that_is_too_old_or_too_much_goes,
        );
    };
}
pub(crate) use conformance;

macro_rules! stories {
    ($start:expr, $module:ident, $($story:ident),+ $(,)?) => {
        $(
            #[tokio::test]
            async fn $story() {
                let backend = $start.await;
                $crate::conformance::$module::$story(&backend).await;
                backend.end().await;
            }
        )+
    };
}
pub(crate) use stories;
