import { createLogger } from '../../../src/base/log';

test('a line names what it is about, and quotes nothing else', () => {
  const about = {
    ...{ dispute_id: 'dp_1', endpoint_id: 'we_1', event_id: 'evt_1', book: 'acct_1:sandbox:EUR' },
    ...{ differing: ['amount'], seconds: 6, activity: 'recordMove', readers: 'everybody' },
    object: 'dp_2',
  };
  const lines: string[] = [];
  const log = createLogger('test', 'info', { write: (line: string) => lines.push(line) });
  log.warn({ ...about, iban: 'DE02120300000000202051', body: '{}' }, 'seen');
  const line = JSON.parse(lines.join());
  expect(line).toMatchObject({ ...about, msg: 'seen' });
  expect(Object.keys(line)).not.toEqual(expect.arrayContaining(['iban']));
  expect(Object.keys(line)).not.toEqual(expect.arrayContaining(['body']));
});
