import type { ConnectorActivities } from '../../connectors/contract/activities';

/** A bank that accepts every instruction and records it. */
export function scriptedBank(changes: Partial<ConnectorActivities> = {}) {
  const instructions: string[] = [];
  const record =
    <Input extends object, Answer>(name: string, act: (input: Input) => Promise<Answer>) =>
    (input: Input): Promise<Answer> => {
      instructions.push(`${name}${getInstructionId(input)}`);
      return act(input);
    };
  const bank: Required<Omit<ConnectorActivities, 'cancelPayout'>> = {
    openSession: async ({ payment_id }) => ({
      outcome: 'opened',
      bank_reference: `ref-${payment_id}`,
      session_url: `https://bank.example/${payment_id}`,
    }),
    closeSession: async () => ({ outcome: 'closed' }),
    voidPayment: async () => ({ outcome: 'voided' }),
    reversePayment: async () => ({ outcome: 'accepted', bank_reference: 'back' }),
    sendRefund: async ({ refund_id }) => ({
      outcome: 'accepted',
      bank_reference: `ref-${refund_id}`,
    }),
    lookUpRefund: async () => ({ outcome: 'not_found' }),
    sendPayout: async ({ payout_id }) => ({ outcome: 'sent', bank_reference: `ref-${payout_id}` }),
    lookUpPayout: async () => ({ outcome: 'not_found' }),
    submitEvidence: async () => ({ outcome: 'accepted' }),
    lookUpEvidence: async () => ({ outcome: 'not_found' }),
    acceptDispute: async () => ({ outcome: 'accepted' }),
    lookUpAcceptance: async () => ({ outcome: 'not_found' }),
    ...changes,
  };
  return {
    told: instructions,
    activities: {
      openSession: record('openSession', bank.openSession),
      closeSession: record('closeSession', bank.closeSession),
      voidPayment: record('voidPayment', bank.voidPayment),
      reversePayment: record('reversePayment', bank.reversePayment),
      sendRefund: record('sendRefund', bank.sendRefund),
      lookUpRefund: record('lookUpRefund', bank.lookUpRefund),
      sendPayout: record('sendPayout', bank.sendPayout),
      lookUpPayout: record('lookUpPayout', bank.lookUpPayout),
      submitEvidence: record('submitEvidence', bank.submitEvidence),
      lookUpEvidence: record('lookUpEvidence', bank.lookUpEvidence),
      acceptDispute: record('acceptDispute', bank.acceptDispute),
      lookUpAcceptance: record('lookUpAcceptance', bank.lookUpAcceptance),
    } satisfies ConnectorActivities,
  };
}

export type ScriptedBank = ReturnType<typeof scriptedBank>;

function getInstructionId(input: object): string {
  if ('instruction_id' in input) return ` ${input.instruction_id}`;
  if ('refund_id' in input) return ` ${input.refund_id}`;
  return 'payout_id' in input ? ` ${input.payout_id}` : '';
}
