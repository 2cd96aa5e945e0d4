import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGate } from '../../src/base/gate';
import { ServiceError } from '../../src/domain/errors';
import type { CheckFolders } from '../../src/service/banks/connector-check';
import { shortenId } from '../../src/service/banks/sepa/book';
import { checkMessage } from '../../src/statements/schema';
import type { Desk } from './desk';
import {
  ARRIVED_BEFORE,
  type Booking,
  type ReadFile,
  readPain001,
  type Status,
  writeCamt,
  writePain002,
} from './file-messages';
import { assertSeen, Broken } from './verdict';

/** A check leaves all other files alone. */
const OWN = 'check-';
const FOLDERS = ['processed', 'refused', 'other'];
const POLL_MS = 50;
/** Minor units. */
const FOREIGN_AMOUNT = 1_000;

export interface Taken {
  folder: string;
  why: string | null;
}

interface FileBankDeps extends CheckFolders {
  /** @returns IDs of the files */
  cut: () => Promise<string[]>;
  isOurs: (file_id: string) => Promise<boolean>;
  resend: (file_id: string) => Promise<number>;
  waitMs: number;
}

export type FileBank = Awaited<ReturnType<typeof startFileBank>>;

/** @throws ServiceError `check_folder_used` for a folder to which another bank writes */
export async function startFileBank({ out, in: dir, waitMs, ...deps }: FileBankDeps) {
  const { cut, isOurs, resend } = deps;
  for (const folder of ['.', ...FOLDERS]) {
    const names = await list(join(dir, folder));
    if (names.every((name) => name.startsWith(OWN))) continue;
    const text = `The folder ${dir} has files of a bank. Give check and connector folders of their own.`;
    throw new ServiceError('check_folder_used', text);
  }
  const read = join(out, 'check');
  await mkdir(read, { recursive: true });
  const files = new Map<string, ReadFile & { isRefused: boolean }>();
  const booked = new Map<string, Booking[]>();
  const oneByOne = createGate(1);

  const findFiles = (payout_id: string) => {
    const id = shortenId(payout_id);
    return [...files.values()].filter(({ transfers }) =>
      transfers.some(({ end_to_end_id }) => end_to_end_id === id),
    );
  };
  const findTransfers = (payout_id: string) =>
    [...files.values()]
      .filter(({ isRefused }) => !isRefused)
      .flatMap(({ transfers }) => transfers)
      .filter(({ end_to_end_id }) => end_to_end_id === shortenId(payout_id));
  const message = () => ({ id: randomUUID().slice(0, 23), at: new Date() });

  const put = async (content: string | Buffer): Promise<string> => {
    const name = `${OWN}${randomUUID()}.xml`;
    await writeFile(join(dir, `.${name}.part`), content);
    await rename(join(dir, `.${name}.part`), join(dir, name));
    return name;
  };
  /** @throws Broken unless the connector takes the file */
  const deliver = async (content: string | Buffer): Promise<Taken> => {
    const name = await put(content);
    const end = Date.now() + waitMs;
    for (;;) {
      for (const folder of FOLDERS) {
        if (!(await list(join(dir, folder))).includes(name)) continue;
        const text = join(dir, folder, `${name}.txt`);
        const why = folder === 'refused' ? await readFile(text, 'utf8') : null;
        return { folder, why };
      }
      assertSeen(Date.now() < end, `a file of the bank was not taken in ${waitMs / 1_000} s`);
      await sleep(POLL_MS);
    }
  };
  const deliverGood = async (content: string): Promise<void> => {
    const { folder, why } = await deliver(content);
    assertSeen(folder === 'processed', `a correct file of the bank went to ${folder}: ${why}`);
  };
  const receive = async (name: string): Promise<void> => {
    const bytes = await readFile(join(out, name));
    await checkMessage(bytes, 'pain.001.001.09');
    const file = await readPain001(bytes);
    if (!(await isOurs(file.id))) return;
    await rename(join(out, name), join(read, name));
    // A bank accepts an ID once; the repeat after a kill is no second order.
    if (files.has(file.id)) return;
    files.set(file.id, { ...file, isRefused: false });
    await put(writeAnswer(file.id, { status: 'ACCP' }));
  };
  const carry = async (): Promise<string[]> => {
    const ids = await cut();
    await oneByOne(async () => {
      for (const name of await list(out)) {
        if (!name.startsWith('.') && name.endsWith('.xml')) await receive(name);
      }
    });
    return ids;
  };
  const getIban = (): string => {
    const [first] = files.values();
    if (first === undefined) throw new Broken('The connector has sent no file.');
    return first.iban;
  };
  const book = (payout_id: string, name: 'completed' | 'returned'): Booking => {
    const [transfer] = findTransfers(payout_id);
    const { amount = FOREIGN_AMOUNT, currency = 'EUR' } = transfer ?? {};
    const reference = `CHECK-${randomUUID().slice(0, 13)}`;
    const booking = {
      ...{ payout_id, currency, reference, amount: name === 'completed' ? -amount : amount },
      ...(name === 'returned' ? { code: 'MD07' } : {}),
    };
    booked.set(payout_id, [...(booked.get(payout_id) ?? []), booking]);
    return booking;
  };
  const notify = (kind: 'camt.054' | 'camt.053', bookings: readonly Booking[]): string =>
    writeCamt(kind, message(), { iban: getIban(), bookings });
  const writeAnswer = (file_id: string, status: Status): string =>
    writePain002(message(), file_id, status);
  const answer = async (file_id: string, status: Status): Promise<void> => {
    const file = files.get(file_id);
    const isWhole = status.payout_id === undefined && status.status === 'RJCT';
    const isDuplicate = ARRIVED_BEFORE.some((code) => code === status.code);
    if (file !== undefined && isWhole && !isDuplicate) file.isRefused = true;
    await deliverGood(writeAnswer(file_id, status));
  };
  const desk: Desk = {
    listEffects: async (id) => {
      await carry();
      return findTransfers(id).map(({ amount, currency }) => ({ amount, currency }));
    },
    report: async ({ resource, resource_id, name }) => {
      if (resource !== 'payout') return false;
      await carry();
      switch (name) {
        case 'completed':
        case 'returned':
          await deliverGood(notify('camt.054', [book(resource_id, name)]));
          return true;
        case 'failed': {
          const file = findFiles(resource_id).at(-1)?.id ?? [...files.keys()][0];
          if (file === undefined) return false;
          await answer(file, { status: 'RJCT', code: 'AC04', payout_id: resource_id });
          return true;
        }
        default:
          return false;
      }
    },
  };
  return {
    ...{ desk, carry, deliver, writeAnswer, answer, notify, book, resend },
    listFiles: (payout_id: string) => findFiles(payout_id).map(({ id }) => id),
    /** Reports by the statement, and twice by the notification. */
    repeat: async (payout_id: string): Promise<string> => {
      const bookings = booked.get(payout_id) ?? [];
      const again = notify('camt.054', bookings);
      await deliverGood(notify('camt.053', bookings));
      await deliverGood(again);
      const { folder, why } = await deliver(again);
      assertSeen(folder === 'refused' && why !== null, `the same bytes again went to ${folder}`);
      return 'camt.054, the same movements in others, and camt.053';
    },
  };
}

async function list(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  } catch {
    return [];
  }
}
