//! `dueline dead list | requeue | purge`

use std::process::ExitCode;

use serde_json::json;

use super::pages::{self, Walk};
use crate::arguments::{Dead, DeadVerb, ListDead, PurgeDead, RequeueDead};
use crate::client::{Client, Path, Request};
use crate::document::{Document, Fields};
use crate::failure::Failure;
use crate::output::{Column, Output};

const COLUMNS: &[Column] = &[
    Column {
        heading: "TIMER",
        cell: |dead| dead.cell("id"),
    },
    Column {
        heading: "DIED",
        cell: |dead| dead.cell("dead_at"),
    },
    Column {
        heading: "ATTEMPT",
        cell: |dead| dead.cell("attempt"),
    },
    Column {
        heading: "REASON",
        cell: |dead| dead.cell("reason"),
    },
    Column {
        heading: "LAST ERROR",
        cell: last_error,
    },
    Column {
        heading: "DEAD ID",
        cell: |dead| dead.cell("dead_id"),
    },
];

fn last_error(dead: &Fields) -> String {
    dead.get("last_error")
        .map(|error| error.fields().cell("detail"))
        .unwrap_or_default()
}

pub(crate) fn run(dead: Dead, output: &Output) -> Result<ExitCode, Failure> {
    match dead.verb {
        DeadVerb::List(list) => self::list(list, output),
        DeadVerb::Requeue(requeue) => self::requeue(&requeue, output),
        DeadVerb::Purge(purge) => self::purge(&purge, output),
    }
}

fn list(list: ListDead, output: &Output) -> Result<ExitCode, Failure> {
    let client = Client::new(&list.server)?;
    let walk = Walk {
        path: Path::dead_letters(&list.partition),
        array: "dead_letters",
        limit: list.limit,
        page_token: list.page_token,
        filter: Vec::new(),
    };
    pages::show(&client, walk, COLUMNS, "no dead letters", output)?;
    Ok(ExitCode::SUCCESS)
}

fn requeue(requeue: &RequeueDead, output: &Output) -> Result<ExitCode, Failure> {
    if requeue.dead_id.is_none() && !requeue.all {
        return Err(Failure::Usage(
            "which dead letter? give its DEAD_ID, as `dueline dead list` names it, or --all for \
             every one of the partition"
                .to_owned(),
        ));
    }
    let client = Client::new(&requeue.server)?;
    let Some(dead_id) = &requeue.dead_id else {
        return requeue_all(&client, &requeue.partition, output);
    };
    let path = Path::dead_letter(&requeue.partition, dead_id).verb("requeue");
    let answer = client.send(&Request::post(path))?;
    output.done(&format!("requeued {dead_id}"), &answer)?;
    Ok(ExitCode::SUCCESS)
}

/// The server works in pages; each call does one and says where the next begins.
fn requeue_all(client: &Client, partition: &str, output: &Output) -> Result<ExitCode, Failure> {
    let (mut done, mut left) = (0, 0);
    let mut token: Option<String> = None;
    loop {
        let request = Request::post(Path::dead_letters(partition).verb("requeue"))
            .query("page_token", token.take());
        let page = client.send(&request)?.fields();
        let count = |name| page.get(name).and_then(Document::as_u64).unwrap_or(0);
        done += count("done");
        left += count("left");
        token = page.get("next_page_token").and_then(Document::as_text);
        if token.is_none() {
            break;
        }
    }
    let document = json!({ "done": done, "left": left });
    if left == 0 {
        output.done(&format!("requeued {done} dead letters"), &document)?;
        return Ok(ExitCode::SUCCESS);
    }
    output.done(
        &format!("requeued {done} dead letters; {left} could not be and stay"),
        &document,
    )?;
    Ok(ExitCode::FAILURE)
}

fn purge(purge: &PurgeDead, output: &Output) -> Result<ExitCode, Failure> {
    let client = Client::new(&purge.server)?;
    let path = Path::dead_letter(&purge.partition, &purge.dead_id).verb("purge");
    client.send(&Request::post(path))?;
    let document = json!({ "dead_id": purge.dead_id, "purged": true });
    output.done(&format!("purged {}", purge.dead_id), &document)?;
    Ok(ExitCode::SUCCESS)
}
