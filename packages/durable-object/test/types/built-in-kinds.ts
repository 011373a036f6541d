// Goal: the built-in kinds have their names where kinds are listed, paused and scheduled again, and nowhere else, and the
// main entry has none of them. Method: as in verbs.ts.
import { Timers as MainTimers } from "@dueline/durable-object";
import { Timers, type BuiltInKind, type BuiltIns, type LogEvent } from "@dueline/durable-object/kinds";

type Kinds = { close: { reason: string } };

declare const timers: Timers<Kinds>;
declare const main: MainTimers<Kinds>;

export async function deadLetters(): Promise<void> {
  await timers.deadLetters.list({ kind: "close" });
  await timers.deadLetters.list({ kind: "$outcome_delivery" });
  // @ts-expect-error There is no such kind.
  await timers.deadLetters.list({ kind: "$outcome" });
  // @ts-expect-error The main entry has no built-in kinds.
  await main.deadLetters.list({ kind: "$outcome_delivery" });
  await timers.deadLetters.requeueAll("$ticket_expiry");
  // @ts-expect-error There is no such kind.
  await timers.deadLetters.requeueAll("ticket_expiry");
  // @ts-expect-error The main entry has no built-in kinds.
  await main.deadLetters.requeueAll("$ticket_expiry");
  const kind: BuiltInKind = "$lease_sweep";
  await timers.deadLetters.list({ kind });
}

export async function pauses(): Promise<void> {
  await timers.pause("$ticket_expiry", { wait: true });
  await timers.resume("$ticket_expiry");
  // @ts-expect-error There is no such kind.
  await timers.pause("$tickets");
  // @ts-expect-error The main entry has no built-in kinds.
  await main.pause("$ticket_expiry");
  // @ts-expect-error Its timers are scheduled by its verbs.
  await timers.schedule("$ticket_expiry", { after: 1 });
}

export const aborting: BuiltIns = {
  tickets: { abort: ({ session, signal }) => fetch(`https://payments/${session}`, { method: "DELETE", signal }) },
};

export function told(event: LogEvent): string {
  if (event.type === "hook") {
    return `${event.kind} ${event.hook} ${event.name}: ${event.error}`;
  }
  // @ts-expect-error Others are of no hook.
  return event.hook;
}
