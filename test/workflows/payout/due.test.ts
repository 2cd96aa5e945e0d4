import { saveHistory } from '../../support/histories';
import { scriptedBank } from '../../support/workflow-setting';
import { type TrackedPayout, useLifecycles } from '../lifecycles';

const { setting, withPayout, withUnsentPayout } = useLifecycles();

async function sleepUntil(time: number): Promise<void> {
  await setting.env.sleep(Math.max(0, time - (await setting.env.currentTimeMs())));
}

const PAYOUTS_MAX = 20;
/** The mark is first read 25 s before it is due. */
const LEFT_MS_MIN = 40_000;

async function leftMs({ stored }: TrackedPayout): Promise<number> {
  return Date.parse((await stored()).due_at) - (await setting.env.currentTimeMs());
}

/** Opens another payout where a busy machine has used up most of the time until it is due. */
async function withTimeLeft(
  story: (payout: TrackedPayout) => Promise<unknown>,
  changes: Parameters<typeof withPayout>[2],
): Promise<void> {
  let isOver = false;
  for (let left = PAYOUTS_MAX; !isOver; left -= 1) {
    await withPayout(
      scriptedBank(),
      async (payout) => {
        isOver = left === 1 || (await leftMs(payout)) >= LEFT_MS_MIN;
        await (isOver ? story(payout) : payout.endBy('completed'));
      },
      changes,
    );
  }
}

test.each([
  [{ method: 'sepa_instant' }, 60],
  [{ method: 'card_payout' }, 15 * 60],
  [{ method: 'faster_payments', currency: 'GBP' }, 2 * 3_600],
] as const)('%j: due after %i s, told once', async (changes, seconds) => {
  await withTimeLeft(async ({ stored, shows, attention, becomes, endBy }) => {
    const { created_at, due_at } = await stored();
    expect(Date.parse(due_at) - Date.parse(created_at)).toBe(seconds * 1_000);
    await shows(`due ${due_at}`);
    await sleepUntil(Date.parse(due_at) - 25_000);
    expect(await attention()).toBeNull();
    await setting.env.sleep('26s');
    await becomes({ attention: 'not_completed' });
    const details = await shows('not_completed');
    expect(details).toContain('`mark_completed`, `mark_failed` or `mark_returned`');
    await setting.env.sleep('30 days');
    expect(await shows('not_completed')).toBe(details);
    await endBy('completed');
    expect(await attention()).toBeNull();
  }, changes);
});

test('a bank that loses every instruction: still created when it is due', async () => {
  const bank = scriptedBank({ sendPayout: () => Promise.reject(new Error('the bank is away')) });
  await withUnsentPayout(bank, async ({ shows, becomes, endBy }) => {
    await shows('never reached the bank');
    await setting.env.sleep('70s');
    await becomes({ attention: 'not_submitted' });
    expect(await shows('not_submitted')).toContain('`resubmit` asks the bank');
    expect(await endBy('completed')).toMatchObject({ status: 'completed', version: 4 });
  });
});

test.each([
  ['a weekend', '2031-05-09T12:00:00.000Z', '2031-05-12T16:00:00.000Z'],
  ['Easter', '2032-03-25T12:00:00.000Z', '2032-03-30T16:00:00.000Z'],
])(
  'a SEPA credit transfer over %s: due at 18:00 in Frankfurt on the next business day',
  async (over, ordered, due) => {
    await sleepUntil(Date.parse(ordered));
    await withPayout(
      scriptedBank(),
      async ({ handle, stored, attention, becomes, endBy }) => {
        expect((await stored()).due_at).toBe(due);
        await sleepUntil(Date.parse(due) - 60_000);
        expect(await attention()).toBeNull();
        await setting.env.sleep('2m');
        await becomes({ attention: 'not_completed' });
        await endBy('completed');
        if (over === 'Easter') await saveHistory(handle, 'payout-due-after-easter');
      },
      { method: 'sepa_credit_transfer' },
    );
  },
);
