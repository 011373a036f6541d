import { dead, detached, done, reschedule, retry, TimerObject, type Handlers } from "@dueline/durable-object";

type Kinds = {
  expire: { cart: string };
  bill: { account: string; cents: number };
  rollup: undefined;
};

interface Env {
  readonly BILLING: Fetcher;
}

export class Shop extends TimerObject<Kinds, Env> {
  protected override handlers(): Handlers<Kinds> {
    const sql = this.ctx.storage.sql;
    return {
      // Effects alone: the timer is done, and they commit with its removal.
      expire: (timer) => () => void sql.exec("DELETE FROM carts WHERE id = ?", timer.payload.cart),

      // Goes out beside other calls; what it brings back is settled in a commit.
      bill: detached({
        call: async ({ payload, occurrenceId, signal }) => {
          const response = await this.env.BILLING.fetch("https://billing/charge", {
            method: "POST",
            headers: { "idempotency-key": occurrenceId },
            body: JSON.stringify(payload),
            signal,
          });
          return response.status;
        },
        settle: (timer, status) => {
          if (status === 402) {
            return dead("the card was declined");
          }
          if (status !== 200) {
            return retry(`billing answered ${status}`, 60_000);
          }
          return done({
            effects: () => void sql.exec("INSERT INTO paid VALUES (?)", timer.payload.account),
            schedule: [{ kind: "expire", name: timer.payload.account, after: 0, payload: { cart: timer.payload.account } }],
          });
        },
        retry: { attempts: 10, initial: 1_000, max: 3_600_000 },
      }),

      // Comes again, from its due: it does not drift. Up to 64 such timers commit together.
      rollup: {
        run: (timer) => reschedule({ dueAt: timer.dueAt + 3_600_000 }, () => void sql.exec("DELETE FROM visits")),
        group: 64,
      },
    };
  }
}
