// Goal: the compiler refuses tickets that are used wrongly. Method: nothing here is run; each use that must not compile
// stands behind one that must and differs from it in one thing. An error that is expected and missing fails the build.
import type { BuiltIns, Tickets } from "@dueline/durable-object/kinds";

declare const tickets: Tickets;
declare const sql: SqlStorage;
const id = "0".repeat(32);

export async function open(): Promise<string> {
  await tickets.open({ resource: "A1", ttl: 1 });
  // @ts-expect-error It has no end.
  await tickets.open({ resource: "A1" });
  // @ts-expect-error A time is no span.
  await tickets.open({ resource: "A1", ttl: new Date() });
  // @ts-expect-error There is no such limit.
  await tickets.open({ resource: "A1", ttl: 1, keyMax: 1 });
  await tickets.open({ resource: "A1", ttl: 1, effects: () => void sql.exec("DELETE FROM seats") });
  // @ts-expect-error Effects do not wait.
  await tickets.open({ resource: "A1", ttl: 1, effects: async () => undefined });

  const opened = await tickets.open({ resource: "A1", ttl: 1, key: "1" });
  // @ts-expect-error It may be refused.
  opened.ticket;
  if (opened.outcome !== "refused") {
    return opened.ticket.id;
  }
  // @ts-expect-error Only a limit has figures.
  opened.openMax;
  return opened.reason === "key_taken" || opened.reason === "key_closing" ? opened.id : `${opened.open} of ${opened.openMax}`;
}

export async function change(): Promise<unknown> {
  const used = await tickets.consume(id);
  // @ts-expect-error It may be gone.
  used.ticket;
  if (used.outcome === "done" || used.outcome === "expired") {
    return used.ticket.data;
  }
  await tickets.extend(id, 1);
  // @ts-expect-error For how long?
  await tickets.extend(id);
  await tickets.openCount({ resource: "A1" });
  await tickets.openCount({ actor: "ann" });
  // @ts-expect-error One of the two.
  return tickets.openCount({ resource: "A1", actor: "ann" });
}

export const builtIns: BuiltIns[] = [
  { tickets: {} },
  { tickets: { onClose: () => undefined } },
  { tickets: { onClose: (ticket, end) => (end === "consumed" ? () => void sql.exec(ticket.resource) : undefined) } },
  { tickets: { onClose: async () => () => void sql.exec("DELETE FROM seats") } },
  // @ts-expect-error Effects do not wait.
  { tickets: { onClose: () => async () => undefined } },
  // @ts-expect-error There is no such end.
  { tickets: { onClose: (_, end) => void (end === "used") } },
  { tickets: { abort: ({ session }) => session.length } },
  // @ts-expect-error A span is a number.
  { tickets: { ttlMax: "1d" } },
];
