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
pub(crate) mod payments;
pub(crate) mod peer_books;
pub(crate) mod peers;
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
pub(crate) mod webhooks;
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
            an_executor_has_a_limited_number_of_concurrent_steps,
            accounts_share_the_steps_of_an_executor_fairly,
            concurrent_workers_take_a_step_once,
            a_step_with_an_expired_lease_is_taken_over,
            a_change_of_a_run_is_atomic,
            events_of_a_run_are_read_from_both_ends,
            runs_are_listed_newest_first_with_their_counts,
            a_waiting_step_is_taken_when_it_is_due,
            another_account_sees_no_agent_runs,
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
            two_concurrent_keys_with_one_name_have_one_winner,
            keys_are_listed_in_the_order_they_were_made_in_pages,
            live_keys_are_found_among_many_ended_ones,
            a_key_is_revoked_once_by_identifier_or_name,
            an_identifier_comes_before_a_name,
            neither_the_own_key_nor_the_last_admin_key_can_be_revoked,
            two_admins_cannot_revoke_each_other_concurrently,
            a_rotated_key_has_a_successor_and_an_end,
            a_rotated_key_keeps_its_lifetime,
            a_key_that_has_ended_cannot_be_rotated,
            the_last_use_of_a_key_never_goes_back,
        );
        $crate::conformance::stories!(
            $start,
            people,
            a_handle_is_claimed_once_and_found,
            a_former_handle_redirects_for_ninety_days,
            two_concurrent_claims_of_a_handle_have_one_winner,
            a_handle_claimed_under_a_key_is_claimed_once,
        );
        $crate::conformance::stories!(
            $start,
            logins,
            a_code_makes_an_account_once_and_its_invitations_find_it,
            a_code_stays_valid_despite_failed_tries_of_others,
            a_code_is_not_replaced_by_requests_for_others,
            a_login_makes_no_account,
            a_device_login_succeeds_once,
            a_program_that_polls_too_often_is_slowed_down,
            a_device_login_expires_and_serves_no_other_program,
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
            a_team_is_transferred_once,
            a_deleted_team_leaves_nothing_behind,
            many_concurrent_answers_count_once,
            invitations_are_listed_newest_first_in_pages,
            invitations_are_limited,
            changes_of_one_team_do_not_affect_others,
        );
        $crate::conformance::stories!(
            $start,
            captures,
            the_first_of_two_rounds_of_an_execution_is_paid,
            a_free_round_leaves_the_capture_to_the_next,
            many_concurrent_closes_capture_once,
            executions_and_accounts_are_paid_separately,
            the_first_answer_to_a_step_is_found,
            an_execution_captured_twice_is_found,
        );
        $crate::conformance::stories!(
            $start,
            checkup,
            a_sound_store_has_no_faults,
            rounds_that_have_ended_are_walked_in_pages,
            the_newest_rounds_are_found,
            a_record_reads_back_with_all_answers,
            changes_outside_of_the_store_are_found,
            an_entry_without_its_round_is_found,
            a_round_without_its_entry_is_found,
        );
        $crate::conformance::stories!(
            $start,
            rounds,
            an_open_round_reads_back,
            a_closed_round_reads_back_with_all_answers,
            a_round_is_opened_once,
            a_round_ends_once,
            an_unknown_round_cannot_be_closed,
            a_close_that_fails_changes_nothing,
            a_receipt_belongs_to_one_round,
            rounds_are_listed_newest_first_in_pages,
            a_list_does_not_read_the_answers,
            rounds_are_filtered_by_kind_and_outcome,
            rounds_are_filtered_by_state_and_time,
            the_newest_rounds_are_counted,
            many_concurrent_rounds_are_all_stored,
            two_concurrent_closes_have_one_winner,
        );
        $crate::conformance::stories!(
            $start,
            idempotency,
            a_write_under_a_key_happens_once,
            a_write_that_did_not_happen_leaves_its_key_free,
            an_abandoned_round_leaves_its_key_to_another,
            a_stored_reply_can_be_completed,
            a_later_reply_is_stored_with_the_write,
            a_round_under_a_key_is_opened_once,
            two_concurrent_rounds_under_one_key_open_once,
            a_key_belongs_to_one_account,
            rounds_are_found_by_a_range_of_keys,
            a_cancelled_round_is_found_by_its_node,
        );
        $crate::conformance::stories!(
            $start,
            takeover,
            a_round_with_an_expired_lease_is_taken_over_unchanged,
            a_round_with_a_valid_lease_is_not_taken_over,
            an_ended_round_is_never_taken_over,
            a_late_close_after_a_takeover_is_lost_and_changes_nothing,
            a_takeover_takes_no_more_than_requested,
            an_unreadable_round_blocks_no_other,
            two_nodes_never_take_over_the_same_round,
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
            two_concurrent_deploys_have_one_winner,
            verifiers_are_listed_by_name_in_pages,
            a_revoked_verifier_is_gone_and_keeps_its_name,
            a_deleted_verifier_leaves_nothing_but_entries,
            answers_after_their_verifier_was_deleted_are_not_kept,
            the_answers_of_judges_are_deleted_with_their_verifier,
            runs_at_the_moment_of_a_delete_leave_nothing,
            versions_cannot_be_changed,
            the_newest_measurement_of_each_purpose_is_shown,
            a_verdict_is_cached_for_a_while,
            old_and_surplus_verdicts_are_removed,
            another_account_sees_no_verifiers,
            a_deploy_under_a_key_happens_once,
        );
        $crate::conformance::stories!($start, access, access_matches_the_model);
        $crate::conformance::stories!(
            $start,
            apart,
            content_is_known_only_to_accounts_that_can_see_it,
            nobody_binds_the_verifiers_of_others,
            a_shared_verifier_opens_no_other_and_no_more,
            ending_a_grant_does_not_affect_other_workflows,
            the_history_of_one_workflow_opens_that_of_no_other,
            another_account_finds_no_round_in_any_way,
            two_accounts_have_the_same_names_for_different_things,
            ending_access_does_not_affect_other_verifiers,
        );
        $crate::conformance::stories!(
            $start,
            workflows,
            a_workflow_is_saved_and_read_back_by_id_and_slug,
            a_save_needs_the_token_of_the_current_version,
            files_are_carried_forward_cleared_and_patched,
            a_grant_opens_a_workflow_from_its_floor_on,
            an_editor_changes_files_and_not_bindings,
            nobody_grants_a_higher_role_than_their_own,
            an_archived_workflow_is_hidden_from_others_and_can_return,
            a_deleted_workflow_leaves_nothing,
            a_token_selects_the_shared_workflow_to_save,
            a_workflow_shares_the_verifiers_that_it_names,
            a_deleted_verifier_is_erased_for_all_who_ran_it,
            a_workflow_is_transferred_with_its_verifiers,
        );
        $crate::conformance::stories!(
            $start,
            shares,
            a_grant_does_not_take_over_a_bare_name,
            a_share_is_pending_until_it_is_used_or_answered,
            a_blocked_owner_shares_nothing_more,
            a_grant_keeps_the_name_it_was_made_to,
            a_grant_to_an_unknown_address_is_like_any_other,
            grants_are_limited_per_day_and_by_pending_ones,
            a_repeated_grant_counts_for_its_day,
            a_revoked_grant_ends_for_the_account_it_was_made_to,
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
            nothing_is_written_if_no_credit_moves,
            an_account_without_credit_opens_no_paid_round,
            an_unmetered_account_may_go_below_zero,
            an_expired_round_releases_its_unused_credit,
            spending_is_counted_since_a_time,
            accounts_are_listed_and_suspended,
            a_grant_under_a_key_happens_once,
            transfers_cannot_be_changed_or_removed,
            a_changed_ledger_is_found,
            many_concurrent_rounds_never_hold_more_than_the_credit,
            any_sequence_of_operations_matches_the_model,
            a_small_balance_is_spent_and_the_next_grant_pays_the_debt,
            calls_that_the_credit_does_not_cover_run_one_at_a_time_on_all_nodes,
            credit_reserved_for_calls_cannot_be_taken_back,
            another_account_sees_no_credit,
        );
        $crate::conformance::stories!(
            $start,
            judge_calls,
            judge_calls_are_recorded_before_they_leave,
            a_usage_history_belongs_to_one_account_and_keeps_the_latest,
        );
        $crate::conformance::stories!(
            $start,
            corrections,
            a_correction_under_one_key_is_made_once,
            a_late_report_of_a_provider_corrects_the_cost,
        );
        $crate::conformance::stories!(
            $start,
            anonymous,
            a_visitor_gets_credit_once_a_month,
            two_concurrent_first_requests_grant_the_credit_once,
            all_visitors_share_one_daily_limit,
            the_next_day_has_a_cap_of_its_own,
            an_abandoned_round_releases_its_hold,
            the_daily_limit_reserves_the_maximum_cost_of_a_call,
            the_debt_of_a_visitor_is_paid_from_the_next_grant,
            the_daily_limit_is_spent_exactly,
        );
        $crate::conformance::stories!(
            $start,
            templates,
            a_version_is_published_and_never_changes,
            nothing_is_published_that_changed_after_screening,
            only_what_is_live_is_seen_by_others,
            a_template_is_found_under_its_old_name,
            a_verifier_of_a_live_template_cannot_be_deleted,
            exactly_the_published_pair_can_be_run_by_anybody,
            a_fork_has_verifiers_and_names_of_its_own,
            a_live_template_cannot_be_deleted,
            templates_are_listed_and_searched,
            a_transferred_template_redirects,
            a_version_is_published_once,
            nobody_publishes_or_changes_the_workflows_of_others,
            each_version_and_each_verifier_is_published_separately,
        );
        $crate::conformance::stories!(
            $start,
            tasks,
            a_task_reads_back_as_it_was_submitted,
            a_task_is_submitted_once,
            events_and_their_documents_are_written_together,
            events_are_read_in_pages_in_their_order,
            two_concurrent_appends_have_one_winner,
            a_refused_append_leaves_nothing_behind,
            a_task_that_is_due_is_taken_by_one_node,
            the_longest_due_are_taken_first,
            tasks_are_listed_by_every_filter_newest_first,
            an_ended_task_has_its_time_and_reason,
            another_account_sees_no_tasks,
            events_of_tasks_cannot_be_changed_or_removed,
            the_stored_state_equals_its_replayed_events,
        );
        $crate::conformance::stories!(
            $start,
            fair_share,
            accounts_share_scarce_slots_fairly,
            no_account_gets_every_slot,
            every_account_is_considered_soon,
            waiting_tasks_are_found_behind_tasks_in_progress,
        );
        $crate::conformance::stories!(
            $start,
            knowledge,
            a_decision_is_found_for_the_same_inputs,
            a_deprecated_decision_is_exported_and_not_used,
            a_deprecation_applies_to_every_equal_decision,
            a_decision_derived_from_a_deprecated_one_is_not_used,
            a_deprecated_decision_is_not_reused,
            outputs_are_read_by_name_and_none_that_is_too_large,
            knowledge_is_exported_in_pages,
        );
        $crate::conformance::stories!(
            $start,
            agent_events,
            an_event_with_a_key_is_added_once,
            an_event_is_sent_by_one_node_until_its_lease_ends,
            executors_and_accounts_at_their_limit_are_left_out,
            a_late_delivery_outcome_is_not_recorded,
            events_of_agents_are_listed_by_every_filter,
            the_events_waiting_for_an_executor_are_limited,
            old_events_are_pruned_and_pending_ones_stay,
            events_for_human_review_are_found,
        );
        $crate::conformance::stories!(
            $start,
            webhooks,
            a_round_is_announced_in_the_transaction_that_closes_it,
            a_webhook_about_one_round_receives_no_others,
            credit_is_announced_with_its_posting,
            a_delivery_is_taken_by_one_node_and_its_late_outcome_is_refused,
            a_disabled_webhook_is_announced_to_the_others,
            a_delivery_is_replayed_unless_it_is_waiting,
            a_late_outcome_changes_nothing_after_the_delivery_was_given_up_or_replayed,
            a_push_notification_whose_receiver_is_gone_is_removed_in_silence,
            a_late_outcome_of_a_replaced_push_notification_changes_nothing,
            waiting_deliveries_are_limited_and_the_rest_is_recorded,
            webhooks_are_limited_listed_and_removed_with_their_deliveries,
            old_deliveries_are_pruned_and_waiting_ones_stay,
            push_notifications_are_few_and_go_when_they_are_stale,
        );
        $crate::conformance::stories!(
            $start,
            peer_books,
            the_books_add_up,
            bookings_are_listed_newest_first_in_pages,
            a_job_is_booked_once,
            concurrent_rounds_book_a_job_once,
            a_close_that_does_not_end_the_round_books_nothing,
            a_booking_that_fails_leaves_the_round_open,
            a_round_that_was_paid_before_books_nothing,
            bookings_outlive_their_round_and_their_peer,
            another_account_sees_no_bookings,
        );
        $crate::conformance::stories!(
            $start,
            peers,
            a_peer_reads_back_as_it_was_put,
            a_peer_has_an_account_that_outlives_it,
            peers_are_listed_by_identity_in_pages,
            every_change_of_a_peer_changes_the_pool,
            an_invitation_admits_one_node,
            an_invitation_ends_and_is_pruned,
            an_invitation_does_not_unblock_a_peer,
            a_known_peer_gets_the_terms_of_its_invitation,
            two_concurrent_nodes_use_an_invitation_once,
            an_executor_of_another_node_reads_back,
        );
        $crate::conformance::stories!(
            $start,
            storage,
            the_request_is_stored_with_its_round,
            request_and_answers_are_erased_and_the_decision_stays,
            stored_bytes_are_counted,
            old_data_is_pruned_and_recent_data_stays,
            events_go_with_tasks_that_ended_long_ago,
            tasks_and_runs_that_are_pruned_count_nothing,
            an_erased_round_uses_no_storage,
            a_round_of_a_deleted_verifier_is_pruned_too,
            every_table_of_accounts_counts_or_is_exempt,
            a_full_owner_account_refuses_writes_of_others,
            accounts_with_stored_data_are_found_in_pages,
        );
        $crate::conformance::stories!($start, open_work, open_work_is_counted_across_accounts);
        $crate::conformance::stories!(
            $start,
            evidence,
            evidence_is_kept_for_its_account_alone,
            old_and_surplus_evidence_is_removed,
        );
        $crate::conformance::stories!(
            $start,
            payments,
            an_authorization_is_reserved_once,
            an_unknown_payment_counts_while_its_authorization_is_good,
            a_name_is_free_again_after_a_final_failure,
            a_payment_is_settled_once_whoever_finds_out,
            an_attempt_that_lost_its_turn_changes_nothing,
            a_payer_sees_its_payments_alone,
            old_payments_are_removed_and_open_ones_stay,
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
