import type { PayoutInput } from '../../../src/domain/payout/workflow';
import { saveHistory } from '../../support/histories';
import { eventually } from '../../support/http';
import { callback, scriptedBank, useWorkflowSetting } from '../../support/workflow-setting';
import { type PayingOut, payingOut, shows, storedPayout, unawaited } from './setting';

const setting = useWorkflowSetting();

const marked = (id: string, mark: string) =>
  eventually(`the mark ${mark}`, async () => {
    const { attention } = await storedPayout(setting, id);
    return attention === mark;
  });

async function sleepUntil(time: number): Promise<void> {
  await setting.env.sleep(time - (await setting.env.currentTimeMs()));
}

const RAILS: [Partial<PayoutInput>, number][] = [
  [{ method: 'sepa_instant' }, 60],
  [{ method: 'card_payout' }, 15 * 60],
  [{ method: 'faster_payments', currency: 'GBP' }, 2 * 3_600],
];

test.each(RAILS)('%j: due after %i s, told once', async (changes, seconds) => {
  const story = async ({ handle, id }: PayingOut) => {
    const { created_at, due_at } = await storedPayout(setting, id);
    expect(Date.parse(due_at) - Date.parse(created_at)).toBe(seconds * 1_000);
    await shows(handle, `due ${due_at}`);
    await sleepUntil(Date.parse(due_at) - 25_000);
    expect((await storedPayout(setting, id)).attention).toBeNull();
    await setting.env.sleep('26s');
    await marked(id, 'not_completed');
    const details = await shows(handle, 'not_completed');
    expect(details).toContain('`mark_completed`, `mark_failed` or `mark_returned`');
    await setting.env.sleep('30 days');
    expect(await shows(handle, 'not_completed')).toBe(details);
    await handle.signal('completed', callback());
    await handle.result();
    expect((await storedPayout(setting, id)).attention).toBeNull();
  };
  await payingOut(setting, scriptedBank(), story, changes);
});

test('a bank that loses every instruction: still created when it is due', async () => {
  const bank = scriptedBank({
    sendPayout: async () => {
      throw new Error('the bank is away');
    },
  });
  await unawaited(setting, bank, async ({ handle, id }) => {
    await shows(handle, 'never reached the bank');
    await setting.env.sleep('70s');
    await marked(id, 'not_submitted');
    expect(await shows(handle, 'not_submitted')).toContain('`resubmit` asks the bank');
    await handle.signal('completed', callback());
    expect(await handle.result()).toMatchObject({ status: 'completed', version: 4 });
  });
});

test.each([
  ['a weekend', '2031-05-09T12:00:00.000Z', '2031-05-12T16:00:00.000Z'],
  ['Easter', '2032-03-25T12:00:00.000Z', '2032-03-30T16:00:00.000Z'],
])(
  'a SEPA credit transfer over %s: due at 18:00 in Frankfurt on the next business day',
  async (...row) => {
    const [over, ordered, due] = row;
    await sleepUntil(Date.parse(ordered));
    const story = async ({ handle, id }: PayingOut) => {
      expect((await storedPayout(setting, id)).due_at).toBe(due);
      await sleepUntil(Date.parse(due) - 60_000);
      expect((await storedPayout(setting, id)).attention).toBeNull();
      await setting.env.sleep('2m');
      await marked(id, 'not_completed');
      await handle.signal('completed', callback());
      await handle.result();
      if (over === 'Easter') await saveHistory(handle, 'payout-due-after-easter');
    };
    await payingOut(setting, scriptedBank(), story, { method: 'sepa_credit_transfer' });
  },
);
