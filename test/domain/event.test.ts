import { EVENT_TYPES, firstDeliveryStatus } from '../../src/domain/webhook/event';

test('an event is sent where an endpoint wants all types or this one', () => {
  for (const type of EVENT_TYPES) {
    expect(firstDeliveryStatus(null, type)).toBe('no_endpoint');
    expect(firstDeliveryStatus('all', type)).toBe('pending');
    expect(firstDeliveryStatus([type], type)).toBe('pending');
    expect(firstDeliveryStatus([], type)).toBe('not_subscribed');
    const others = EVENT_TYPES.filter((other) => other !== type);
    expect(firstDeliveryStatus(others, type)).toBe('not_subscribed');
  }
});
