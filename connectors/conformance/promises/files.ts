import { PERSONAL } from '../documents';
import type { FileBank, Taken } from '../file-bank';
import { ARRIVED_BEFORE } from '../file-messages';
import { assertSeen, need } from '../verdict';
import {
  assertEffects,
  type ContractPromise,
  listSignals,
  type World,
  waitForSignals,
} from '../world';
import { waitForMarkers } from './callbacks';
import { makeTaken, PAYOUT } from './outgoing';

const UNKNOWN_FILE = '0'.repeat(32);

interface Carried {
  files: FileBank;
  id: string;
  file: string;
}

async function carryOne(world: World): Promise<Carried> {
  const files = need(world.files, 'Its bank has no files.');
  const { id } = await makeTaken(PAYOUT, world);
  await files.carry();
  const [file = ''] = files.listFiles(id);
  assertSeen(file !== '', 'the payout is in no file');
  return { files, id, file };
}

/** @param harmless report that moves no money */
async function assertWaits(
  world: World,
  payout_id: string,
  when: string,
  harmless?: string,
): Promise<void> {
  const { outcome } = await world.instructor.read('lookUpPayout', { payout_id });
  assertSeen(outcome === 'submitted', `lookUpPayout answered ${outcome} ${when}`);
  // Another promise may have its file called a duplicate.
  const signals = (await listSignals(world, 'payout', payout_id)).filter(
    ({ name }) => name !== 'called_duplicate' && name !== harmless,
  );
  assertSeen(signals.length === 0, `${signals[0]?.name} was reported ${when}`);
}

/** @see docs/sepa.md */
export const FILE_PROMISES: readonly ContractPromise[] = [
  {
    id: 'files.one',
    promise: 'A payout is in one file, however often and at once files are cut.',
    check: async (world) => {
      const { files, id } = await carryOne(world);
      await Promise.all([files.carry(), files.carry(), files.carry()]);
      const { length } = files.listFiles(id);
      assertSeen(length === 1, `it is in ${length} files`);
      const { outcome } = await world.instructor.read('cancelPayout', { payout_id: id });
      assertSeen(outcome === 'too_late', `cancelPayout answered ${outcome} after its file left`);
      return `in one file after four cuts, ${await assertEffects(world, id, 'once')}, too_late`;
    },
  },
  {
    id: 'files.lost',
    promise: 'A movement whose notification got lost is reported by the statement.',
    check: async (world) => {
      const { files, id } = await carryOne(world);
      const statement = files.notify('camt.053', [files.book(id, 'completed')]);
      const { folder } = await files.deliver(statement);
      assertSeen(folder === 'processed', `the statement went to ${folder}`);
      await waitForSignals(world, 'payout', id, ['completed']);
      return 'completed by camt.053 alone';
    },
  },
  {
    id: 'files.verified',
    promise: 'Files that are cut off, malformed, foreign or of another kind are refused in words.',
    check: async (world) => {
      const { files, id } = await carryOne(world);
      const good = files.notify('camt.054', [files.book(id, 'completed')]);
      const entity = '?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>';
      const wrong: Record<string, string | Buffer> = {
        'cut off': good.slice(0, good.length >> 1),
        'with a document type': good.replace('?>', entity),
        'with a wrong code': good.replace('DBIT', 'BOTH'),
        'of another kind': good.replaceAll('camt.054.001.08', 'camt.052.001.08'),
        'that is no XML': 'Dear customer',
        'that is empty': '',
      };
      for (const [what, content] of Object.entries(wrong)) {
        assertRefused(`a file ${what}`, await files.deliver(content));
      }
      const other = good.replace(/<IBAN>\w+/, '<IBAN>DE89370400440532013000');
      const { folder } = await files.deliver(other);
      assertSeen(folder === 'other', `a file of another account went to ${folder}`);
      await waitForMarkers(world);
      await assertWaits(world, id, 'after files that are none');
      return `refused: ${Object.keys(wrong).join(', ')}; put aside: of another account`;
    },
  },
  {
    id: 'files.foreign',
    promise: 'An answer to a file that the connector has not sent is refused.',
    check: async (world) => {
      const { files, id, file } = await carryOne(world);
      const answer = files.writeAnswer(file, { status: 'RJCT', code: 'FF01' });
      assertRefused(
        'an answer to an unknown file',
        await files.deliver(answer.replaceAll(file, UNKNOWN_FILE)),
      );
      await assertWaits(world, id, 'after the answer to another file');
      return 'refused in words';
    },
  },
  {
    id: 'files.duplicate',
    promise: 'A rejection as a duplicate refuses and fails no file or payout, and is reported.',
    check: async (world) => {
      const { files, id, file } = await carryOne(world);
      for (const code of ARRIVED_BEFORE) {
        await files.answer(file, { status: 'RJCT', code });
        await files.answer(file, { status: 'RJCT', code, payout_id: id });
      }
      await waitForMarkers(world);
      await assertWaits(world, id, `after ${ARRIVED_BEFORE.join(', ')}`);
      const payout = { resource: 'payout', resource_id: id, name: 'completed' } as const;
      await files.desk.report(payout);
      await waitForSignals(world, 'payout', id, ['called_duplicate', 'completed']);
      return `submitted after ${ARRIVED_BEFORE.join(', ')}, then completed`;
    },
  },
  {
    id: 'files.payee_verified',
    promise: 'A result of a check of the recipient’s name is reported, and the payout waits.',
    check: async (world) => {
      const { files, id, file } = await carryOne(world);
      for (const status of ['RVNM', 'RCVC']) await files.answer(file, { status, payout_id: id });
      await waitForSignals(world, 'payout', id, ['payee_verified']);
      await waitForMarkers(world);
      await assertWaits(world, id, 'after a check', 'payee_verified');
      return 'payee_verified, submitted';
    },
  },
  {
    id: 'files.refused',
    promise: 'A file that the bank refuses fails no payout: another file carries them.',
    alone: true,
    check: async (world) => {
      const { files, id, file } = await carryOne(world);
      await files.answer(file, { status: 'RJCT', code: 'FF01' });
      await waitForMarkers(world);
      await assertWaits(world, id, 'after its file was refused');
      await assertEffects(world, id, 'none');
      const freed = await files.resend(file);
      assertSeen(freed > 0, 'its payouts could not be sent again');
      await files.carry();
      const others = files.listFiles(id).filter((each) => each !== file);
      assertSeen(others.length === 1, `it is in ${others.length} other files`);
      return `submitted, then in another file, ${await assertEffects(world, id, 'once')}`;
    },
  },
  {
    id: 'files.checked_again',
    promise: 'What became final before its file was written is left out.',
    alone: true,
    check: async (world) => {
      const files = need(world.files, 'Its bank has no files.');
      for (const status of ['failed', 'completed']) {
        const { id } = await makeTaken(PAYOUT, world);
        await world.documents.change('payout', id, { status });
        await files.carry();
        const { length } = files.listFiles(id);
        assertSeen(length === 0, `it was sent after it was ${status}`);
        const { outcome } = await world.instructor.read('lookUpPayout', { payout_id: id });
        assertSeen(outcome === 'refused', `lookUpPayout answered ${outcome}`);
      }
      return 'failed, completed: left out, and refused';
    },
  },
  {
    id: 'files.private',
    promise: 'Nothing of a recipient in the bank’s files is in a report or a reason.',
    check: async (world) => {
      const { files, id } = await carryOne(world);
      const notification = files.notify('camt.054', [files.book(id, 'completed')]);
      const [name = ''] = PERSONAL;
      assertSeen(notification.includes(name), 'the bank names nobody');
      const { why } = await files.deliver(notification.replace('</Nm>', ''));
      assertSeen(why !== null, 'a file that is not well-formed was taken');
      await files.desk.report({ resource: 'payout', resource_id: id, name: 'failed' });
      await waitForSignals(world, 'payout', id, ['failed']);
      const rows = await world.stores.callbacks.forResource(id);
      const text = JSON.stringify([why, rows]);
      const quoted = PERSONAL.some((word) => text.includes(word));
      assertSeen(!quoted, 'the recipient is quoted');
      return 'nothing in the callback and in the reason of a refused file';
    },
  },
];

function assertRefused(what: string, { folder, why }: Taken): void {
  assertSeen(folder === 'refused', `${what} went to ${folder}`);
  assertSeen((why ?? '').trim() !== '', `${what} was refused without a reason`);
}
