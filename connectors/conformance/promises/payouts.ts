import { PERSONAL } from '../documents';
import type { Fault } from '../faults';
import type { ContractPromise } from '../promise';
import { assertSeen, NotApplicable } from '../verdict';
import { assertEffects, needBank } from '../world';
import { assertHas, makeTaken, PAYOUT } from './outgoing';

const FAULTS: readonly Fault[] = [
  ...(['quotes', 'quotes_code', 'garbage', 'unavailable'] as const),
  ...(['fails_after', 'cut_before'] as const),
];

export const PAYOUT_PROMISES: readonly ContractPromise[] = [
  {
    id: 'payout.cancel_first',
    promise: 'A payout that was cancelled before it arrived is refused, and not sent.',
    check: async (world) => {
      const { id, input } = await PAYOUT.make(world);
      const { outcome } = await world.instructor.read('cancelPayout', { payout_id: id });
      if (outcome === 'unknown') throw new NotApplicable('The connector cannot cancel a payout.');
      assertSeen(outcome === 'cancelled', `cancelPayout answered ${outcome} before the payout`);
      const sent = await world.instructor.read('sendPayout', input);
      assertSeen(sent.outcome === 'refused', `sendPayout answered ${sent.outcome} after cancelled`);
      return `cancelled, then refused; ${await assertEffects(world, id, 'none')}`;
    },
  },
  {
    id: 'payout.cancel_late',
    promise: '`cancelled` promises that nothing is sent; what the bank holds is `too_late`.',
    check: async (world) => {
      const { id } = await makeTaken(PAYOUT, world);
      const { outcome } = await world.instructor.read('cancelPayout', { payout_id: id });
      const effects = await assertEffects(world, id, outcome === 'cancelled' ? 'none' : 'once');
      return `${outcome}, ${effects}`;
    },
  },
  {
    id: 'payout.frozen',
    promise: 'Nothing is sent for an account that is frozen.',
    check: async (world) => {
      await assertHas(PAYOUT, world);
      const input = await world.documents.makePayout(undefined, { isFrozen: true });
      const outcome = await world.instructor.ask('sendPayout', input);
      assertSeen(!('answer' in outcome), 'it was answered');
      return `an exception; ${await assertEffects(world, input.payout_id, 'none')}`;
    },
  },
  {
    id: 'payout.deleted',
    promise: 'A payout to a deleted recipient is refused.',
    check: async (world) => {
      await assertHas(PAYOUT, world);
      const input = await world.documents.makePayout(undefined, { isDeleted: true });
      const { outcome } = await world.instructor.read('sendPayout', input);
      assertSeen(outcome === 'refused', `answered ${outcome}`);
      return `refused; ${await assertEffects(world, input.payout_id, 'none')}`;
    },
  },
  {
    id: 'payout.private',
    promise: 'Nothing of a recipient is in an answer or an error.',
    check: async (world) => {
      const bank = needBank(world);
      for (const fault of FAULTS) {
        const { id, input } = await PAYOUT.make(world);
        const armed = bank.arm(fault, { ids: [id], of: 'writes' });
        const outcome = await world.instructor.ask('sendPayout', input).finally(armed.clear);
        const text = JSON.stringify(outcome);
        const hasPersonal = PERSONAL.some((word) => text.includes(word));
        assertSeen(
          !hasPersonal,
          `the answer quotes the recipient where the bank’s answer has the fault ${fault}`,
        );
      }
      return `nothing in what Temporal stores, at ${FAULTS.join(', ')}`;
    },
  },
];
