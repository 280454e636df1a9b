FROM unknown_settings('columns_given')
