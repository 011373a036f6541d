// Nothing of the package is loaded before the first request, and then it is timed.
let took: number | undefined;

export default {
  async fetch(): Promise<Response> {
    if (took === undefined) {
      const begun = performance.now();
      await import("@dueline/durable-object");
      took = performance.now() - begun;
    }
    return Response.json({ value: took });
  },
};
