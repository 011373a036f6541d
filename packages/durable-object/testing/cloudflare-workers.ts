// The classes of `cloudflare:workers` that an object's module extends.

class Entry {
  protected readonly ctx: unknown;
  protected readonly env: unknown;

  constructor(ctx: unknown, env: unknown) {
    this.ctx = ctx;
    this.env = env;
  }
}

export class DurableObject extends Entry {}
export class WorkerEntrypoint extends Entry {}
export class RpcTarget {}
