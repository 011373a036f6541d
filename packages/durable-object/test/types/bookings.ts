// Goal: the compiler refuses reservations and quotas that are wrong. Method: as in `verbs.ts`.
import type { BuiltIns, Timers } from "@dueline/durable-object/kinds";

declare const timers: Timers<Record<string, never>>;
declare const sql: SqlStorage;

const { reservations, quotas } = timers;
const effects = (): void => void sql.exec("DELETE FROM seats");

export async function reserve(): Promise<unknown> {
  const made = await reservations.reserve("12A", { commitWithin: 1_000, detail: { holder: "ann" }, effects });
  // @ts-expect-error For how long?
  await reservations.reserve("12A", { skew: 1_000 });
  // @ts-expect-error A span is a number.
  await reservations.reserve("12A", { commitWithin: "10 min" });
  // @ts-expect-error Effects do not wait.
  await reservations.reserve("12A", { commitWithin: 1_000, effects: async () => undefined });
  // @ts-expect-error A detail has no type.
  made.reservation.detail.holder;
  // @ts-expect-error There is no such state.
  return made.reservation.state === "settled";
}

export async function settle(serial: string): Promise<unknown> {
  const committed = await reservations.commit("12A", { serial });
  // @ts-expect-error It may be missing.
  committed.reservation;
  if (committed.outcome !== "missing") {
    return committed.reservation.endedAt;
  }
  // @ts-expect-error Which of those that had this id?
  await reservations.commit("12A", {});
  // @ts-expect-error A serial is a string.
  await reservations.commit("12A", { serial: 7 });
  // @ts-expect-error Why?
  await reservations.abort("12A", { serial });
  // @ts-expect-error The detail is replaced: by what?
  await reservations.extend("12A", { serial, commitWithin: 1_000 });
  // @ts-expect-error Nothing is done with it.
  await reservations.forget("12A", { serial, effects });
  const found = await reservations.get("12A");
  // @ts-expect-error There may be none.
  return found.serial;
}

export async function charge(): Promise<unknown> {
  await quotas.charge("api", [1, 512], { limits: [100, Infinity], effects });
  // @ts-expect-error There is a list of amounts.
  await quotas.charge("api", 1);
  // @ts-expect-error A limit is a number.
  await quotas.charge("api", [1], { limits: [undefined] });
  // @ts-expect-error Effects do not wait.
  await quotas.charge("api", [1], { effects: async () => undefined });
  const charged = await quotas.charge("api", [1]);
  // @ts-expect-error Only a refusal names a counter.
  charged.counter;
  if (charged.outcome === "refused") {
    return charged.counter;
  }
  // @ts-expect-error Its rows may be gone.
  return (await quotas.total("api", new Date())).length;
}

export const builtIns: BuiltIns[] = [
  { reservations: {}, quotas: {} },
  { reservations: { onAbandon: () => undefined } },
  { reservations: { onAbandon: ({ id }) => () => void sql.exec("DELETE FROM seats WHERE id = ?", id) } },
  { reservations: { onAbandon: async () => effects } },
  // @ts-expect-error Effects do not wait.
  { reservations: { onAbandon: () => async () => undefined } },
  // @ts-expect-error There is no such option.
  { reservations: { onCommit: () => undefined } },
  { quotas: { api: { window: 60_000 } } },
  // @ts-expect-error How long is a window?
  { quotas: { api: {} } },
  // @ts-expect-error There is nothing to roll up.
  { quotas: { api: { window: 60_000, period: 1_000 } } },
];
