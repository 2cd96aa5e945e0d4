import type { DisputeAnswer } from '../../../src/domain/dispute/dispute';
import { assertSeen } from '../verdict';
import { assertEffects, type ContractPromise, type World, waitForSignals } from '../world';
import { bringToBank, listOnce, reportEach } from './callbacks';
import { assertHas, keepPrivate, listOutages, listOutgoing, type Outgoing } from './outgoing';

const OPENED = 'dispute_opened';

/** Brings a payment to the bank, which settles it and reports disputes about it. */
async function dispute(world: World, names: readonly string[]) {
  const subject = await bringToBank(world, 'payment');
  await reportEach(world, subject, ['authorized', 'settled']);
  return { subject, names: await reportEach(world, subject, names) };
}

async function makeDispute(world: World, answering: DisputeAnswer, evidence_due_at?: string) {
  const { id } = (await dispute(world, [OPENED])).subject;
  await waitForSignals(world, 'payment', id, [OPENED]);
  const callbacks = await world.stores.callbacks.forResource(id);
  const body = Object(callbacks.find(({ name }) => name === OPENED)?.body);
  const bank_dispute_id: string = body.dispute_id ?? body.callback_id;
  return await world.documents.makeDispute(id, { bank_dispute_id, answering, evidence_due_at });
}

/** An answer to a dispute, which moves no money. */
function buildAnswer(name: DisputeAnswer, activities: Pick<Outgoing, 'send' | 'lookUp'>): Outgoing {
  const another = { instruction_id: 'another', payment_id: 'another', bank_dispute_id: 'another' };
  return {
    ...{ name, resource: 'dispute', noun: 'answers to disputes', ...activities },
    ...{ taken: ['accepted'], others: { ...another, livemode: true }, ended: 'lost' },
    make: async (world) => {
      const input = await makeDispute(world, name);
      const { version: _version, livemode: _livemode, ...question } = input;
      const { dispute_id: id, instruction_id, bank_dispute_id } = input;
      return { id, instruction_id, ids: [id, bank_dispute_id], input, question };
    },
  };
}

const EVIDENCE = buildAnswer('evidence', { send: 'submitEvidence', lookUp: 'lookUpEvidence' });
const ACCEPTANCE = buildAnswer('acceptance', { send: 'acceptDispute', lookUp: 'lookUpAcceptance' });

/** @see docs/connectors.md#disputes */
export const DISPUTE_PROMISES: readonly ContractPromise[] = [
  ...listOutgoing(EVIDENCE),
  ...listOutages(EVIDENCE),
  {
    id: 'evidence.late',
    promise: 'Evidence whose deadline is over is refused, and not sent.',
    check: async (world) => {
      await assertHas(EVIDENCE, world);
      const over = new Date(Date.now() - 1_000).toISOString();
      const input = await makeDispute(world, 'evidence', over);
      const { outcome } = await world.instructor.read('submitEvidence', input);
      assertSeen(outcome === 'refused', `answered ${outcome}`);
      return `refused; ${await assertEffects(world, input.instruction_id, 'none')}`;
    },
  },
  keepPrivate(EVIDENCE, 'the evidence'),
  ...listOutgoing(ACCEPTANCE),
  ...listOutages(ACCEPTANCE),
  listOnce('dispute.once', 'A fact about a dispute', (world) =>
    dispute(world, [OPENED, 'dispute_updated', 'dispute_withdrawn', 'dispute_reinstated']),
  ),
];
