import { RecipientDeleted } from '../../connectors/contract/recipients';
import { PAYOUT_MAGIC_AMOUNTS } from '../../connectors/sandbox/magic-amounts';
import { DecryptionError } from '../../src/encryption/encrypter';
import { payoutInstruction, RECIPIENT } from './bank-server';
import { type BankWorld, useBankWorld } from './bank-world';

const world = useBankWorld();

const activities = () => world.server.bank.activities;
const lookUp = (payout_id: string) => activities().lookUpPayout({ payout_id });

const bank_reference = expect.stringMatching(/^SBX[0-9A-F]{12}$/);
const SENT = { outcome: 'sent', bank_reference };

describe('sendPayout', () => {
  it('puts the reference of the payout on the recipient’s statement', async () => {
    const { input, id } = await world.knowPayout();
    const texts = new Map([[id, 'Salary 11/2026']]);
    await world.server.restart({ readReference: async (payout) => texts.get(payout) ?? null });
    await activities().sendPayout(input);
    expect(await world.payouts.findOne({ _id: id })).toMatchObject({ statement: 'Salary 11/2026' });
    await world.server.restart();
  });

  it('refuses live payouts without opening the recipient', async () => {
    const openRecipient = jest.fn(async () => RECIPIENT);
    await world.server.restart({ decryptRecipient: openRecipient });
    const input = payoutInstruction({ livemode: true });
    expect(await activities().sendPayout(input)).toMatchObject({
      outcome: 'refused',
      code: 'live_not_supported',
    });
    expect([await world.rows(input.payout_id), await lookUp(input.payout_id)]).toEqual([
      [],
      { outcome: 'not_found' },
    ]);
    expect(openRecipient).not.toHaveBeenCalled();
    await world.server.restart();
  });
});

describe('the recipient of a payout', () => {
  it('is opened by the payout, and nothing of it is kept, answered or told', async () => {
    const openRecipient = jest.fn(async () => RECIPIENT);
    await world.server.restart({ decryptRecipient: openRecipient });
    const amounts = [3_400, ...Object.keys(PAYOUT_MAGIC_AMOUNTS).map(Number)];
    const said: string[] = [];
    for (const amount of amounts) {
      const { input } = await world.knowPayout({ amount });
      const answer = await activities().sendPayout(input).catch(String);
      said.push(JSON.stringify([answer, await lookUp(input.payout_id)]));
      expect(openRecipient).toHaveBeenLastCalledWith(input.payout_id);
    }
    const dump = `${said.join()}${await dumpOf(world)}`;
    expect(dump).toContain('scheme_rejected');
    for (const value of personalValues()) expect(dump).not.toContain(value);
    await world.server.restart();
  });

  it('that cannot be opened: an error to be retried, without its cause; nothing is written', async () => {
    const openRecipient = async () => {
      throw new SyntaxError(`Unexpected token in JSON: ${JSON.stringify(RECIPIENT)}`);
    };
    await world.server.restart({ decryptRecipient: openRecipient });
    const { input, id } = await world.knowPayout();
    const error = await activities()
      .sendPayout(input)
      .catch((thrown: unknown) => thrown);
    expect(error).toEqual(new Error('The recipient’s details could not be opened (SyntaxError).'));
    expect(error).not.toHaveProperty('cause');
    expect(error).not.toHaveProperty('nonRetryable');
    expect([await world.rows(id), await lookUp(id)]).toEqual([[], { outcome: 'not_found' }]);
    await world.server.restart();
    expect(await activities().sendPayout(input)).toEqual(SENT);
  });

  it('that was deleted: refused for good, also where an earlier attempt has opened it', async () => {
    const { input, id } = await world.knowPayout();
    let opened = () => {};
    const slow = new Promise<typeof RECIPIENT>((resolve) => {
      opened = () => resolve(RECIPIENT);
    });
    const openRecipient = jest.fn<Promise<typeof RECIPIENT>, [string]>(() => slow);
    await world.server.restart({ decryptRecipient: openRecipient });
    const earlier = activities().sendPayout(input);
    while (openRecipient.mock.calls.length === 0) await new Promise(setImmediate);
    openRecipient.mockImplementation(() => Promise.reject(new RecipientDeleted()));
    const refused = {
      outcome: 'refused',
      code: 'recipient_deleted',
      message: 'The recipient was deleted before the payout was sent.',
    };
    expect(await activities().sendPayout(input)).toEqual(refused);
    opened();
    expect([await earlier, await lookUp(id)]).toEqual([refused, refused]);
    await world.server.restart();
  });

  it('need not be opened for the repeat of a payout that was taken', async () => {
    const { input, id } = await world.knowPayout();
    const answer = await activities().sendPayout(input);
    const openRecipient = () => Promise.reject(new DecryptionError());
    await world.server.restart({ decryptRecipient: openRecipient });
    expect(await activities().sendPayout(input)).toEqual(answer);
    expect(await lookUp(id)).toEqual(answer);
    await world.server.restart();
  });
});

/** Everything that the bank's own database holds, as text. */
async function dumpOf({ own }: BankWorld): Promise<string> {
  const collections = await own.collections();
  const documents = await Promise.all(collections.map((each) => each.find().toArray()));
  return JSON.stringify(documents);
}

function personalValues(): string[] {
  const { type: _, country: _also, ...personal } = RECIPIENT;
  return Object.values(personal).filter((value) => value !== null);
}
