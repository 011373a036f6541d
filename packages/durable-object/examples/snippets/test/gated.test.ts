// The blog's posts appear as the documentation says.
import assert from "node:assert/strict";
import { afterEach, beforeEach, it } from "node:test";
import { TestClock, TestObject } from "@dueline/durable-object/testing";
import { Album, Blog } from "../src/gated.js";

let clock: TestClock;
let blog: TestObject<Blog>;
let cats: TestObject<Album>;

beforeEach(async () => {
  clock = TestClock.install();
  cats = await TestObject.open(clock, Album, { name: "cats" });
  const ALBUMS = { idFromName: (name: string) => name, get: () => ({ areThere: (of: string[]) => Promise.resolve(cats.instance.areThere(of)) }) };
  blog = await TestObject.open(clock, Blog, { env: { ALBUMS: ALBUMS as unknown as DurableObjectNamespace<Album> } });
});
afterEach(() => clock.uninstall());

const posts = (): unknown[] => blog.sql("SELECT name, state FROM posts");

it("a post appears with the last of its images", async () => {
  await blog.instance.draft("hello", [["cats", "tom"], ["cats", "garfield"]]);
  await clock.advance(60_000);
  assert.deepEqual(posts(), [{ name: "hello", state: "draft" }]);
  cats.sql("INSERT INTO images VALUES ('garfield'), ('tom')");
  await blog.instance.imageArrived("hello");
  await clock.advance(10);
  assert.deepEqual(posts(), [{ name: "hello", state: "out" }]);
});

it("a draft that is thrown away never appears", async () => {
  await blog.instance.draft("hello", [["cats", "tom"]]);
  await blog.instance.discard("hello");
  await clock.advance(10);
  cats.sql("CREATE TABLE IF NOT EXISTS images (name TEXT PRIMARY KEY)");
  cats.sql("INSERT INTO images VALUES ('tom')");
  await clock.advance(60_000);
  assert.deepEqual(posts(), []);
});
