FROM recorded_prices()
