import type { About } from "../hooks.js";
import { decodeName } from "../payload.js";

/** What a hook is, to whoever reads of its failure. */
interface Asked {
  /** The kind that asks. */
  readonly kind: string;
  /** The option that is asked. */
  readonly hook: string;
  /** Whether a run of a timer fails with it. */
  readonly failsRun: boolean;
  /** What it was asked about. */
  readonly of: (argument: never) => Pick<About, "name" | "sequence">;
}

/** The hooks by the names under which the core asks them. No payload is among what is told. */
const ASKED: Readonly<Record<string, Asked>> = {
  "lease.drain": {
    kind: "$lease_sweep",
    hook: "drain",
    failsRun: true,
    of: ({ name }: { readonly name: Uint8Array }) => ({ name: decodeName(name) }),
  },
  "ticket.close": {
    kind: "$ticket_expiry",
    hook: "onClose",
    failsRun: true,
    of: ({ ticket }: { readonly ticket: { readonly id: string } }) => ({ name: ticket.id }),
  },
  "ticket.abort": {
    kind: "$ticket_expiry",
    hook: "abort",
    failsRun: false,
    of: ({ id }: { readonly id: string }) => ({ name: id }),
  },
  "ticket.event": {
    kind: "$ticket_expiry",
    hook: "onEvent",
    failsRun: false,
    of: ({ id }: { readonly id: string }) => ({ name: id }),
  },
  "reservation.abandon": {
    kind: "$reservation_reconcile",
    hook: "onAbandon",
    failsRun: true,
    of: ({ id }: { readonly id: Uint8Array }) => ({ name: decodeName(id) }),
  },
  "gated.look": {
    kind: "$publication_recheck",
    hook: "look",
    failsRun: true,
    of: ({ place }: { readonly place: Uint8Array }) => ({ name: decodeName(place) }),
  },
  "gated.release": {
    kind: "$publication_recheck",
    hook: "release",
    failsRun: true,
    of: ({ record }: { readonly record: Uint8Array }) => ({ name: decodeName(record) }),
  },
  "outbox.deliver": {
    kind: "$outcome_delivery",
    hook: "deliver",
    failsRun: false,
    of: ({ outbox, sequence }: { readonly outbox: Uint8Array; readonly sequence: number }) => ({
      name: decodeName(outbox),
      sequence,
    }),
  },
};

/** What is said of a hook that failed. */
export function about(asked: string, argument: unknown): About | undefined {
  const found = ASKED[asked];
  if (found === undefined) {
    return undefined;
  }
  const { kind, hook, failsRun, of } = found;
  return { kind, hook, failsRun, ...of(argument as never) };
}
