// Goal: the compiler refuses sinks, outcomes and gates that are wrong. Method: as in `verbs.ts`.
import {
  dead,
  done,
  outbox,
  reschedule,
  SinkError,
  type BuiltIns,
  type Delivery,
  type Handlers,
  type Timers,
} from "@dueline/durable-object/kinds";

type Kinds = { close: { reason: string } };

interface Paid {
  readonly cents: number;
}

declare const timers: Timers<Kinds>;
declare const send: (delivery: Delivery) => Promise<Response>;
const told = [{ name: "paid", id: "order-1", payload: { cents: 5 } }];

export const builtIns: BuiltIns = {
  outboxes: {
    plain: (delivery) => void JSON.stringify(delivery.payload),
    // @ts-expect-error A payload has no type unless it is given one.
    untyped: (delivery) => void delivery.payload.cents,
    typed: outbox<Paid>({ deliver: ({ payload }) => void payload.cents.toFixed(2) }),
    parsed: outbox({ parse: (payload) => payload as Paid, deliver: ({ payload }) => void payload.cents.toFixed(2) }),
    // @ts-expect-error The payload is of another type.
    other: outbox<Paid>({ deliver: ({ payload }) => void payload.euros }),
    awaited: async (delivery) => {
      await send(delivery);
    },
    // @ts-expect-error Whether it has arrived is said by the answer, which nobody looks at.
    answered: (delivery) => send(delivery),
    withOptions: { deliver: () => undefined, rows: 10, deadline: 1_000, budget: 5_000, retry: { attempts: 3 } },
    // @ts-expect-error There is no sink.
    sinkless: { rows: 10 },
  },
  gated: { look: ({ keys }) => keys.map(() => true), release: (record) => () => void record },
};

export const gates: BuiltIns[] = [
  { gated: { look: async ({ keys }) => keys.map(() => true), release: async () => undefined } },
  // @ts-expect-error A look answers for each key.
  { gated: { look: () => true, release: () => undefined } },
  // @ts-expect-error Effects are writes that are done when they return.
  { gated: { look: () => [], release: () => async () => undefined } },
];

export const faults = [
  new SinkError("failed", "500"),
  new SinkError("refused", "410"),
  new SinkError("unavailable", "503", { after: 1_000, cause: new Error("down") }),
  // @ts-expect-error There is no such fault.
  new SinkError("gone", "410"),
  // @ts-expect-error It is a span in milliseconds.
  new SinkError("unavailable", "503", { after: "1 s" }),
];

export async function verbs(): Promise<void> {
  const { outboxes, gated } = timers;
  await outboxes.append("paid", [{ id: "order-1" }], { effects: () => undefined });
  // @ts-expect-error An outcome has an id.
  await outboxes.append("paid", [{ payload: 1 }]);
  // @ts-expect-error Effects are writes that are done when they return.
  await outboxes.append("paid", [{ id: "order-1" }], { effects: async () => undefined });
  const { items, next } = await outboxes.dead("paid");
  await outboxes.dead("paid", { after: next });
  for (const { sequence, reason } of items) {
    await outboxes.requeue("paid", sequence);
    // @ts-expect-error There is no such reason.
    void (reason === "lost");
  }
  await gated.add("post", [{ place: "images", key: "cat" }]);
  // @ts-expect-error A dependency lies in a place.
  await gated.add("post", [{ key: "cat" }]);
}

export const handlers: Handlers<Kinds> = {
  close: ({ payload }) => {
    switch (payload.reason) {
      case "done":
        return done<Kinds>({ effects: () => undefined, outbox: told });
      case "wrong":
        // @ts-expect-error An outcome says which outbox.
        return done<Kinds>({ outbox: [{ id: "order-1" }] });
      case "again":
        return reschedule({ after: 1, payload: { reason: "done" } }, { outbox: told });
      default:
        return dead("nobody wants it", { outbox: told });
    }
  },
};
