//! Bugs that a checker must find: a place in the product's sources, and what the copy has there.

/// One place of a bug.
#[derive(Debug)]
pub struct Bug {
    /// What is wrong when it is switched on. A bug may have several places.
    pub name: &'static str,
    /// The file, from the folder `crates`.
    pub file: &'static str,
    /// The text as it is; found there exactly once.
    pub place: &'static str,
    /// The text of the copy, which does the same while the bug is not switched on.
    pub switch: &'static str,
}

/// All of them.
pub const BUGS: &[Bug] = &[
    Bug {
        name: "signal_notifies_before_it_raises",
        file: "dueline-tokio/src/signal.rs",
        place: "            *raised = true;\n",
        switch: r#"
            if WEAVE::planted::is("signal_notifies_before_it_raises") {
                drop(raised);
                self.changed.notify_one();
                *self.lock() = true;
                return;
            }
            *raised = true;
"#,
    },
    Bug {
        name: "sleep_is_published_after_the_looks_are_read",
        file: "dueline-tokio/src/looks.rs",
        place: "        table.asleep_until_ms = first.map_or",
        switch: r#"
        if WEAVE::planted::is("sleep_is_published_after_the_looks_are_read") {
            drop(table);
            table = self.lock();
        }
        table.asleep_until_ms = first.map_or"#,
    },
    Bug {
        name: "only_the_first_look_wakes",
        file: "dueline-tokio/src/looks.rs",
        place: "let wakes = earliest_ms < table.asleep_until_ms;",
        switch: r#"
        let is_first = table.groups.iter().all(|group| group.times_ms.len() == 1);
        let wakes = earliest_ms < table.asleep_until_ms
            && (is_first || !WEAVE::planted::is("only_the_first_look_wakes"));"#,
    },
    Bug {
        name: "close_forgets_what_was_noted",
        file: "dueline-tokio/src/looks.rs",
        place: "group.limit(horizon_ms.min(group.horizon_ms));",
        switch: r#"
            if WEAVE::planted::is("close_forgets_what_was_noted") {
                group.times_ms.clear();
            }
            group.limit(horizon_ms.min(group.horizon_ms));"#,
    },
    Bug {
        name: "gate_changes_without_its_lock",
        file: "dueline-sqlite/src/gate.rs",
        place:
            "        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if self.state.load(Ordering::Acquire) == from {",
        switch: r#"
        let _changing = (!WEAVE::planted::is("gate_changes_without_its_lock"))
            .then(|| self.changing.lock().unwrap_or_else(PoisonError::into_inner));
        if self.state.load(Ordering::Acquire) == from {"#,
    },
    Bug {
        name: "answer_takes_the_waker_first",
        file: "dueline-sqlite/src/oneshot.rs",
        place: "let before = std::mem::replace(&mut *self.lock(), state);",
        switch: r#"
        let before = if WEAVE::planted::is("answer_takes_the_waker_first") {
            let waker = match &mut *self.lock() {
                State::Waiting(waker) => waker.take(),
                _ => None,
            };
            drop(std::mem::replace(&mut *self.lock(), state));
            State::Waiting(waker)
        } else {
            std::mem::replace(&mut *self.lock(), state)
        };"#,
    },
    Bug {
        name: "what_is_left_in_the_queue_is_forgotten",
        file: "dueline-sqlite/src/inbox.rs",
        place: "state.urgent = !state.items.is_empty();",
        switch: r#"state.urgent = !state.items.is_empty()
            && !WEAVE::planted::is("what_is_left_in_the_queue_is_forgotten");"#,
    },
    Bug {
        name: "nudge_is_taken_with_what_is_queued",
        file: "dueline-sqlite/src/inbox.rs",
        place: "        let more = state.urgent;",
        switch: r#"
        if WEAVE::planted::is("nudge_is_taken_with_what_is_queued") {
            state.nudged = false;
        }
        let more = state.urgent;"#,
    },
    Bug {
        name: "push_wakes_without_saying_why",
        file: "dueline-sqlite/src/inbox.rs",
        place: "            Push::Eager => !std::mem::replace",
        switch: r#"
            Push::Eager if WEAVE::planted::is("push_wakes_without_saying_why") => true,
            Push::Eager => !std::mem::replace"#,
    },
    Bug {
        name: "close_wakes_nobody",
        file: "dueline-sqlite/src/inbox.rs",
        place: "        self.pushed.notify_all();",
        switch: r#"
        if !WEAVE::planted::is("close_wakes_nobody") {
            self.pushed.notify_all();
        }"#,
    },
    Bug {
        name: "push_looks_at_the_stage_before_it_locks",
        file: concat!("dueline-tokio/src/work", "/pool.rs"),
        place: "        let mut table = self.lock();
        let refused = table.stage == Stage::Stopped || (is_tick && table.stage > Stage::Running);",
        switch: r#"
        let early = WEAVE::planted::is("push_looks_at_the_stage_before_it_locks").then(|| self.stage());
        let mut table = self.lock();
        let stage = early.unwrap_or(table.stage);
        let refused = stage == Stage::Stopped || (is_tick && stage > Stage::Running);"#,
    },
    Bug {
        name: "thread_is_noted_as_waiting_too_late",
        file: concat!("dueline-tokio/src/work", "/pool.rs"),
        place: "        if job.is_none() && has_room {\n",
        switch: r#"
        if WEAVE::planted::is("thread_is_noted_as_waiting_too_late") {
            drop(table);
            table = self.lock();
        }
        if job.is_none() && has_room {
"#,
    },
    Bug {
        name: "stage_is_entered_and_nobody_told",
        file: concat!("dueline-tokio/src/work", "/pool.rs"),
        place: "        for signal in &self.signals {
            signal.raise();",
        switch: r#"
        for signal in &self.signals {
            if WEAVE::planted::is("stage_is_entered_and_nobody_told") {
                break;
            }
            signal.raise();"#,
    },
    Bug {
        name: "wake_during_a_poll_is_taken_for_an_old_one",
        file: concat!("dueline-tokio/src/work", "/executor.rs"),
        place: "        place.mark.queued.store(false, Ordering::Release);",
        switch: r#"
        if !WEAVE::planted::is("wake_during_a_poll_is_taken_for_an_old_one") {
            place.mark.queued.store(false, Ordering::Release);
        }"#,
    },
    Bug {
        name: "wake_during_a_poll_is_taken_for_an_old_one",
        file: concat!("dueline-tokio/src/work", "/executor.rs"),
        place: "        if over {
            let ended = place.running.take();",
        switch: r#"
        if WEAVE::planted::is("wake_during_a_poll_is_taken_for_an_old_one") {
            place.mark.queued.store(false, Ordering::Release);
        }
        if over {
            let ended = place.running.take();"#,
    },
    Bug {
        name: "thread_is_woken_before_its_job_is_ready",
        file: concat!("dueline-tokio/src/work", "/executor.rs"),
        place: "            self.ready.push(self.slot);
            self.ready.signal.raise();",
        switch: r#"
            if WEAVE::planted::is("thread_is_woken_before_its_job_is_ready") {
                self.ready.signal.raise();
                self.ready.push(self.slot);
                return;
            }
            self.ready.push(self.slot);
            self.ready.signal.raise();"#,
    },
    Bug {
        name: "call_is_over_before_its_settle_is_queued",
        file: concat!("dueline-tokio/src/work", "/calls.rs"),
        place: "            watch.finish(finished);
            drop(busy);",
        switch: r#"
            if WEAVE::planted::is("call_is_over_before_its_settle_is_queued") {
                drop(busy);
                return watch.finish(finished);
            }
            watch.finish(finished);
            drop(busy);"#,
    },
    Bug {
        name: "calls_are_refused_while_ticks_go_on",
        file: "dueline-tokio/src/shutdown.rs",
        place: "        shared.pool.enter(Stage::Finishing);",
        switch: r#"
        if WEAVE::planted::is("calls_are_refused_while_ticks_go_on") {
            shared.calls.close();
        }
        shared.pool.enter(Stage::Finishing);"#,
    },
    Bug {
        name: "one_of_those_that_wait_for_idle_is_woken",
        file: "dueline-tokio/src/busy.rs",
        place: "            std::mem::take(&mut table.waiting)\n",
        switch: r#"
            if WEAVE::planted::is("one_of_those_that_wait_for_idle_is_woken") {
                table.waiting.pop().into_iter().collect()
            } else {
                std::mem::take(&mut table.waiting)
            }
"#,
    },
    Bug {
        name: "queue_is_looked_at_before_the_connection_is_free",
        file: "dueline-sqlite/src/commit.rs",
        place: "        let replies = self.run_some(&mut side);
        drop(side);",
        switch: r#"
        let replies = self.run_some(&mut side);
        let looked_empty =
            WEAVE::planted::is("queue_is_looked_at_before_the_connection_is_free")
                && self.writes.is_empty();
        drop(side);"#,
    },
    Bug {
        name: "queue_is_looked_at_before_the_connection_is_free",
        file: "dueline-sqlite/src/commit.rs",
        place: "        if !self.writes.is_empty() {
            self.writes.nudge();",
        switch: r#"
        let too_early = WEAVE::planted::is("queue_is_looked_at_before_the_connection_is_free");
        if !(if too_early { looked_empty } else { self.writes.is_empty() }) {
            self.writes.nudge();"#,
    },
    Bug {
        name: "failed_store_wakes_nobody",
        file: "dueline-sqlite/src/commit.rs",
        place: "            *side = None;
            self.writes.nudge();",
        switch: r#"
            *side = None;
            if !WEAVE::planted::is("failed_store_wakes_nobody") {
                self.writes.nudge();
            }"#,
    },
    Bug {
        name: "checkpoint_leaves_what_came_meanwhile",
        file: "dueline-sqlite/src/checkpoint.rs",
        place: "        self.writes.nudge();",
        switch: r#"
        if !WEAVE::planted::is("checkpoint_leaves_what_came_meanwhile") {
            self.writes.nudge();
        }"#,
    },
];

/// Places where a model has a say in what the world around the product does.
pub const SEAMS: &[Bug] = &[
    Bug {
        name: "commit_statement",
        file: "dueline-sqlite/src/commit.rs",
        place: r#"side.backend.control("COMMIT")"#,
        switch: r#"WEAVE::under_shuttle::commits::commit(|| side.backend.control("COMMIT"))"#,
    },
    Bug {
        name: "tasks_of_the_async_runtime",
        file: "dueline-tokio/src/task_host.rs",
        place: "let task = Self::spawn(self, task);",
        switch: "let task = shuttle::future::spawn(task);",
    },
];
