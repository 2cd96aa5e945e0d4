import type { ContractPromise } from '../promise';
import { assertSeen, NotApplicable } from '../verdict';
import { assertEffects } from '../world';
import { listPrivate } from './outages';
import { assertHas, makeTaken, PAYOUT } from './outgoing';

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
  ...listPrivate(PAYOUT, 'a recipient'),
];
