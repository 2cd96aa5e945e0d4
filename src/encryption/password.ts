import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';

/** Minimum cost of argon2id by OWASP. */
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

/** Characters. @see docs/dashboard.md#sign-in */
export const PASSWORD_LENGTH = { min: 12, max: 200 } as const;

/** Keyboards and systems write the same character in several Unicode forms. */
function normalizePassword(password: string): string {
  return password.normalize('NFKC');
}

export function isLongEnough(password: string): boolean {
  const { length } = [...normalizePassword(password)];
  return length >= PASSWORD_LENGTH.min && length <= PASSWORD_LENGTH.max;
}

export async function hashPassword(password: string): Promise<string> {
  return String(await call({ password: normalizePassword(password) }));
}

let dummyHash: Promise<string> | undefined;

/** Takes the same time without a hash: the duration must not reveal whether a user exists. */
export async function isPassword(
  input: string,
  password_hash: string | undefined,
): Promise<boolean> {
  const password = normalizePassword(input);
  if ([...password].length > PASSWORD_LENGTH.max) return false;
  // Always, so that the first sign-in of a process takes the same time, too.
  dummyHash ??= hashPassword('nobody').catch((error: unknown) => {
    dummyHash = undefined;
    throw error;
  });
  const dummy = await dummyHash;
  const matches = await call({ password, hash: password_hash ?? dummy });
  return matches === true && password_hash !== undefined;
}

interface Job {
  password: string;
  /** Absent: the password is hashed. */
  hash?: string;
}

interface Answer {
  id: number;
  result?: string | boolean;
  error?: string;
}

/** Hashes in a thread of its own: a flood of sign-ins must not delay Node's pool. */
const THREAD = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { hashSync, verifySync } = require(workerData.library);
  parentPort.on('message', ({ id, password, hash }) => {
    try {
      const result = hash ? verifySync(hash, password) : hashSync(password, workerData.cost);
      parentPort.postMessage({ id, result });
    } catch (error) {
      parentPort.postMessage({ id, error: String(error) });
    }
  });
`;

let thread: Worker | undefined;
let lastId = 0;
const waiting = new Map<number, (answer: Omit<Answer, 'id'>) => void>();

function call(job: Job): Promise<string | boolean | undefined> {
  thread ??= startThread();
  const current = thread;
  lastId += 1;
  const id = lastId;
  return new Promise((resolve, reject) => {
    waiting.set(id, ({ result, error }) => {
      waiting.delete(id);
      if (waiting.size === 0) current.unref();
      if (error === undefined) resolve(result);
      else reject(new Error(error));
    });
    current.ref();
    current.postMessage({ id, ...job });
  });
}

function startThread(): Worker {
  const library = createRequire(__filename).resolve('@node-rs/argon2');
  const worker = new Worker(THREAD, { eval: true, workerData: { library, cost: COST } });
  worker.on('message', ({ id, ...answer }: Answer) => waiting.get(id)?.(answer));
  const fail = (error: string) => {
    // The end follows an error, when another thread may have started.
    if (thread !== worker) return;
    thread = undefined;
    for (const settle of [...waiting.values()]) settle({ error });
  };
  worker.on('error', (error) => fail(`The thread of passwords failed: ${error.message}`));
  worker.on('exit', () => fail('The thread of passwords has ended.'));
  return worker;
}

let passwords: ReadonlySet<string> | undefined;

/**
 * Finds a password in the shipped list, also repeated or between digits and signs: guessing
 * programs try those first.
 * @see docs/dashboard.md#sign-in
 */
export function isBreachedPassword(password: string): boolean {
  if (passwords === undefined) {
    const path = require.resolve('@zxcvbn-ts/language-common/src/passwords.json');
    passwords = new Set(z.array(z.string()).parse(JSON.parse(readFileSync(path, 'utf8'))));
  }
  const text = normalizePassword(password).toLowerCase();
  const word = text.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, '');
  const [, repeated] = /^(.+?)\1+$/su.exec(text) ?? [];
  return [text, word, repeated].some((each) => each !== undefined && passwords?.has(each));
}
