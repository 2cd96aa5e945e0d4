import { EVENT_TYPES, firstDeliveryStatus, type Subscriber } from '../../src/domain/webhook/event';

test('an event is sent where an endpoint wants all types or this one', () => {
  for (const type of EVENT_TYPES) {
    const statusOf = (wants: Subscriber['wants'], isDisabled = false) =>
      firstDeliveryStatus({ wants, isDisabled }, type);
    expect(statusOf('all')).toBe('pending');
    expect(statusOf([type])).toBe('pending');
    expect(statusOf([])).toBe('not_subscribed');
    expect(statusOf(EVENT_TYPES.filter((other) => other !== type))).toBe('not_subscribed');
    expect(statusOf('all', true)).toBe('disabled');
  }
});
