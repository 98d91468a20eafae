define BuildPackage
$(eval TITLE:=)$(eval DEPENDS:=)$(eval $(Package/$(1)))
shown+=package $(1) $(TITLE) install=$(words $(Package/$(1)/install));depends $(1) $(DEPENDS);
endef
show: ; @printf '%s' 'version $(PKG_VERSION);$(shown)' | tr ';' '\n' | sed 's/^ *//'
