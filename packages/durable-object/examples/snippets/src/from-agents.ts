import { Timers } from "@dueline/durable-object";

type Kinds = { sendReminder: { message: string } };

interface Row extends Record<string, SqlStorageValue> {
  readonly id: string;
  readonly payload: string;
  readonly time: number;
}

/** Makes timers of the one-shot schedules of an agent. It may be cut and called again. */
export async function takeOver(storage: DurableObjectStorage, timers: Timers<Kinds>): Promise<number> {
  const rows = storage.sql
    .exec<Row>("SELECT id, payload, time FROM cf_agents_schedules WHERE callback = 'sendReminder' AND type IN ('scheduled', 'delayed')")
    .toArray();
  for (const { id, payload, time } of rows) {
    // The agents SDK counts in seconds. The name makes a second call harmless.
    await timers.schedule("sendReminder", {
      name: id,
      policy: "ifAbsent",
      dueAt: time * 1_000,
      payload: JSON.parse(payload) as Kinds["sendReminder"],
    });
    storage.sql.exec("DELETE FROM cf_agents_schedules WHERE id = ?", id);
  }
  return rows.length;
}
